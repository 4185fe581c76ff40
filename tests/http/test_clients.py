"""The clients that come with the daemon, and the calls that the documents show, against the daemon."""

import re
import subprocess

import pytest

from client import ROOT


def run(command, **keywords):
    done = subprocess.run(command, capture_output=True, timeout=120, cwd=ROOT, **keywords)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


@pytest.mark.every_build
def test_every_call_of_the_shell_client_is_answered_right(daemon):
    status, output = run(["clients/shell/try.sh", f"http://127.0.0.1:{daemon.port}"])
    assert status == 0, output
    assert "0 wrong" in output


def test_the_shell_client_fails_when_nobody_answers():
    status, output = run(["clients/shell/try.sh", "http://127.0.0.1:1"])
    assert status != 0, output
    assert output.count("\n") == 1 and "nothing answers" in output


def wrk(daemon, threads=2, connections=16, seconds=1, **settings):
    command = [
        "wrk",
        f"-t{threads}",
        f"-c{connections}",
        f"-d{seconds}",
        "-s",
        "clients/wrk/dot.lua",
    ]
    flags = [f"{name}={value}" for name, value in settings.items()]
    return run([*command, f"http://127.0.0.1:{daemon.port}", "--", *flags])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"body": "json", "n": 16},
        {"dtype": "float64"},
        {"n": 0},
        {"device": "cpu", "n": 1024},
        {"accept": "raw"},
    ],
)
def test_wrk_gets_only_right_answers(daemon, settings):
    status, output = wrk(daemon, **settings)
    assert status == 0, output
    found = re.search(r"(\d+) right, (\d+) wrong, (\d+) not 2xx, (\d+) socket errors", output)
    assert found, output
    right, *bad = map(int, found.groups())
    assert right > 0 and bad == [0, 0, 0], output


def test_wrk_tells_when_answers_are_refused(start_daemon):
    daemon = start_daemon(max_body_bytes=100)
    _, output = wrk(daemon, n=1024)
    assert re.search(r"0 right, \d+ wrong, [1-9]\d* not 2xx", output), output
    assert re.search(r"first that is not 2xx: 413 .*bytes", output), output


@pytest.mark.parametrize("setting", ["dtype=int8", "nonesuch=1", "n=many"])
def test_wrk_refuses_settings_that_it_cannot_follow(daemon, setting):
    name, value = setting.split("=")
    status, output = wrk(daemon, **{name: value})
    assert status == 1, output
    told = [line for line in output.splitlines() if line.startswith("dot.lua: ")]
    assert told and "PANIC" not in output, output


def documented_calls(path):
    """Every line of the sh blocks of a document that calls the daemon, or makes what a call sends."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if re.match(r"(curl|wrk|printf) ", line)]


@pytest.mark.parametrize("path", ["README.md", "proto/API.md"])
def test_every_documented_call_works(daemon, tmp_path, path):
    """In the document's order, as a line may use a file that an earlier one made. A comment behind a
    call tells a field of the answer, or the status of an answer that is meant to be a refusal."""
    calls = documented_calls(path)
    assert len(calls) >= 4
    for call in calls:
        expected = re.search(r"# (\w+): (.+)$", call)
        here = call.replace("http://127.0.0.1:8080", f"http://127.0.0.1:{daemon.port}")
        here = here.replace("clients/", f"{ROOT}/clients/").replace("-d10", "-d1")
        here = here.replace("/tmp/", f"{tmp_path}/")
        script = f'set -e; curl() {{ command curl -sS --fail-with-body "$@"; }}; {here}'
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, timeout=120, cwd=tmp_path
        )
        report = f"{call}\n{done.stdout}{done.stderr}"
        refused = bool(expected) and expected[1] == "status"
        assert done.returncode == (22 if refused else 0), report
        assert "Warning" not in done.stderr, report
        if refused:
            assert done.stderr.endswith(f"error: {expected[2]}\n"), report
        elif expected:
            assert f'"{expected[1]}": {expected[2]},' in done.stdout, report


def test_the_reference_names_every_error_and_option(daemon):
    reference = (ROOT / "proto/API.md").read_text()
    rows = re.findall(r'X\(ERR_\w+, (\d+), "([a-z-]+)"', (ROOT / "proto/error.h").read_text())
    assert len(rows) > 20
    missing = [name for status, name in rows[1:] if f"| {status} | `{name}` |" not in reference]
    _, unknown = run(["curl", "-sS", f"http://127.0.0.1:{daemon.port}/v1/dot?nonesuch=1"])
    options = re.search(r"known are ([\w, ]+)", unknown)[1].split(", ")
    missing += [name for name in options if f"`{name}`" not in reference]
    assert missing == []
