"""The C client: every behaviour of c_client_test.c against the server it is meant for, and what an
installation has."""

import os
import re
import shutil
import subprocess

import pytest

from client import PROGRAM_S, REPORT, ROOT, SANITIZERS
from planted import HANG_UP, RESET, SILENCE, answer, json_result, problem

SOURCE = (ROOT / "tests/clients/c_client_test.c").read_text()
NAMES = re.findall(r"cmocka_unit_test\((\w+)\)", SOURCE)
ENVIRONMENT = os.environ | SANITIZERS | {"no_proxy": "*"}
BUSY = problem(503, "busy", "Retry-After: 1")


def result(text):
    return answer(200, text.encode(), "Content-Type: application/json")


def nonsense():
    """No answer of HTTP, and answers of status 200 that are none of dotd's."""
    whole = '{"bits": "0x0000000000000000", "shape": [], "result_dtype": "float64"}'
    texts = [
        "",
        "nonsense",
        "{}",
        '{"bits": "0x',
        '{"bits": [[[["0x0000000000000000"',
        whole.replace("float64", "float31"),
        whole.replace("[]", "[2]"),
        whole.replace("[]", "[4294967296, 4294967296, 4294967296]"),
        whole.replace("[]", "[1,1,1,1,1,1,1,1,1]"),
        whole.replace("0x0000", "0xzzzz"),
        whole.replace('"0x0000000000000000"', '["0x0", {}, "\\'),
        whole.replace('"0x0000000000000000"', '"' + "0" * 100 + '"'),
        whole.replace("}", ', "error_bound": [0, 0, 0, 0]}'),
        whole.replace("{", "{\0"),
    ]
    return [b"SSH-2.0-OpenSSH\r\n\r\n", *(result(text) for text in texts)]


PLANTED = {
    "planted_retries_come_when_they_are_told": [BUSY, BUSY, json_result(3.0)],
    "planted_retries_end": [BUSY, BUSY],
    "planted_retries_may_be_forbidden": [BUSY],
    "planted_retries_that_would_come_too_late_are_not_made": [
        problem(503, "busy", "Retry-After: 3600")
    ],
    "planted_ends_before_an_answer_are_tried_again": [HANG_UP, RESET, json_result(3.0)],
    "planted_calls_share_a_connection": [json_result(float(i)) for i in range(5)],
    "planted_silence_ends_with_the_timeout": [SILENCE],
    "planted_silence_ends_with_the_timeout_of_each": [SILENCE],
    "planted_deadlines_of_the_service_are_late": [
        problem(504, "deadline", detail='not ready ä\n"\\')
    ],
    "planted_nonsense_is_a_bad_answer": nonsense(),
    "planted_words_of_a_proxy_are_told": [answer(502, b"<h1>Bad Gateway</h1>")],
    "planted_nobody_is_unreachable": None,
}


@pytest.fixture(scope="session")
def program(binary):
    path = binary.parent / "c_client_test"
    if not path.exists():
        pytest.skip("built without libcurl")
    return path


def run(*command, **keywords):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=PROGRAM_S, **keywords
    )
    return done.returncode, done.stdout + done.stderr


def behave(program, url, name):
    status, output = run(program, url, name, env=ENVIRONMENT)
    assert status == 0 and f"[       OK ] {name}" in output, output
    assert not REPORT.search(output), output


@pytest.mark.every_build
@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("planted_")])
def test_of_the_service(program, url, name):
    behave(program, url, name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("planted_")])
def test_of_planted_answers(program, plant, name):
    if PLANTED[name] is None:
        return behave(program, "http://127.0.0.1:1", name)
    server = plant(*PLANTED[name])
    behave(program, server.url, name)
    assert len(server.requests) == len(PLANTED[name]) and server.answers == []
    if name == "planted_calls_share_a_connection":
        assert {number for number, _, _ in server.requests} == {0}
    if name == "planted_retries_come_when_they_are_told":
        assert all("Authorization: Bearer s3cr.et" in head for _, head, _ in server.requests)
        assert len({body for _, _, body in server.requests}) == 1


@pytest.fixture(scope="session")
def installed(program, tmp_path_factory):
    """A prefix with the client alone."""
    prefix = tmp_path_factory.mktemp("prefix")
    build = program.parent
    status, output = run("cmake", "--install", build, "--component", "client", "--prefix", prefix)
    assert status == 0, output
    return prefix


def test_an_installation_builds_the_example_by_pkg_config(installed, binary, url, tmp_path):
    """With the sanitizers that the library has, under a prefix that the build did not know."""
    (config,) = installed.rglob("dotd.pc")
    environment = ENVIRONMENT | {"PKG_CONFIG_PATH": str(config.parent)}
    status, flags = run("pkg-config", "--cflags", "--libs", "dotd", "libcurl", env=environment)
    assert status == 0 and str(installed) in flags, flags
    cache = (binary.parent / "CMakeCache.txt").read_text()
    sanitizers = re.search(r"^DOTD_SANITIZE:STRING=(.+)$", cache, re.M)
    more = [f"-fsanitize={sanitizers[1]}"] if sanitizers else []
    library = next(installed.rglob("libdotd.so")).parent
    program = tmp_path / "example"
    command = ["cc", *more, ROOT / "clients/c/example.c", *flags.split(), "-o", program]
    status, output = run(*command, f"-Wl,-rpath,{library}")
    assert status == 0, output
    status, output = run(program, url, env=ENVIRONMENT)
    assert status == 0, output
    assert output.startswith("32 by exact on cpu in ") and "first: 14\n" in output, output
    status, output = run(program, "http://127.0.0.1:1", env=ENVIRONMENT)
    assert status == 1 and "127.0.0.1" in output, output


def test_the_library_shows_its_door_and_nothing_else(installed):
    if shutil.which("nm") is None:
        pytest.skip("no nm here")
    library = next(installed.rglob("libdotd.so"))
    _, output = run("nm", "--dynamic", "--defined-only", library)
    names = {line.split()[-1] for line in output.splitlines()}
    header = (ROOT / "clients/c/dotd.h").read_text()
    door = set(re.findall(r"\b(dotd_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)))
    ours = {name for name in names if not name.startswith(("_", "asan", "ubsan", "tsan"))}
    assert ours == door and len(door) > 10
