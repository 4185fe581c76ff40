"""The calls and programs that the documents show, run as they stand."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.parse

import pytest

from client import PROGRAM_S, ROOT, SANITIZERS

HERE = "http://127.0.0.1:8080"
CONTRACT = json.loads((ROOT / "proto/openapi.json").read_text())
SHELL = re.compile(r"^ *(curl|wrk|printf) .+$", re.MULTILINE)


def all_documents():
    paths = [*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/**/*.md")]
    names = sorted(str(path.relative_to(ROOT)) for path in paths)
    return [name for name in names if not name.startswith(("build/", "tests/bench/results/"))]


def documents(word=""):
    """Every document with a line for a shell, with that word, that calls the daemon or makes what a
    call sends. Those of measurements need what is measured."""
    names = [name for name in all_documents() if not name.startswith("tests/bench/")]
    return [name for name in names if any(word in line for line in shell_lines(name))]


def shell_lines(name):
    text = (ROOT / name).read_text()
    code = re.findall(r"^```sh\n(.*?)^```|^((?: {4}.*\n)+)", text, re.DOTALL | re.MULTILINE)
    return [found[0].strip() for block in code for found in SHELL.finditer("".join(block))]


def run_line(line, daemon, folder):
    """The exit status and the output of a line, with this daemon and a folder of its own."""
    here = line.replace(HERE, f"http://127.0.0.1:{daemon.port}").replace("/tmp/", f"{folder}/")
    here = here.replace("clients/", f"{ROOT}/clients/")
    here = re.sub(r"^wrk -t\d+ -c\d+ -d\d+", f"wrk -t1 -c2 -d1 --timeout {PROGRAM_S}", here)
    script = f'set -e; curl() {{ command curl -sS --fail-with-body "$@"; }}; {here}'
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=folder, timeout=PROGRAM_S
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", documents())
def test_every_line_for_a_shell_does_what_it_says(daemon, tmp_path, name):
    """In the document's order, as a line may use a file that an earlier one made. A comment behind a
    call tells a field of the answer, or the status of an answer that is meant to be a refusal."""
    for line in shell_lines(name):
        expected = re.search(r"# (\w+): (.+)$", line)
        status, output, errors = run_line(line, daemon, tmp_path)
        report = f"{line}\n{output}{errors}"
        is_refused = bool(expected) and expected[1] == "status"
        assert status == (22 if is_refused else 0), report
        assert "Warning" not in errors, report
        if is_refused:
            assert errors.endswith(f"error: {expected[2]}\n"), report
        elif expected:
            assert f'"{expected[1]}": {expected[2]},' in output, report


@pytest.mark.parametrize("name", ["README.md", "proto/API.md"])
def test_the_answer_that_is_shown_has_the_fields_that_come(daemon, name):
    (shown,) = re.findall(
        r"^```json\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE
    )
    shown = json.loads(shown)
    asked = (
        {"a": [1, 2, 3], "b": [4, 5, 6]}
        if name == "README.md"
        else {"a": [1e16, 1, -1e16], "b": [1, 1, 1]}
    )
    came = daemon.dot(asked).ok()
    assert list(shown) == list(came) and list(shown["timing_us"]) == list(came["timing_us"])
    own = {"timing_us", "device_name"}
    assert [shown[key] for key in shown if key not in own] == [
        came[key] for key in came if key not in own
    ]


def links(name):
    """Files and headings that a document leads to."""
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", (ROOT / name).read_text()):
        path, _, heading = target.partition("#")
        yield target, (ROOT / name).parent / path if path else ROOT / name, heading


def headings(path):
    """As a browser of repositories names them."""
    lines = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line).lower().replace(" ", "-") for line in lines}


@pytest.mark.parametrize("name", all_documents())
def test_every_link_leads_somewhere(name):
    for target, path, heading in links(name):
        assert path.exists(), target
        assert not heading or heading in headings(path), target


def sources_of(folder):
    """Without headers that are the door of a file beside them."""
    for path in sorted(folder.rglob("*.*")):
        is_door = path.suffix == ".h" and any(
            path.with_suffix(suffix).exists() for suffix in (".c", ".cu")
        )
        if path.suffix in {".c", ".h", ".cu", ".cuh", ".py", ".js", ".lua"} and not is_door:
            yield path


@pytest.mark.parametrize(
    "name",
    ["proto", "server", "gpu", "clients/c", "clients/web", "tests/bench", "tests/fuzz"],
)
def test_a_readme_names_every_source_of_its_folder(name):
    """By its whole name, or as a program."""
    text = (ROOT / name / "README.md").read_text()
    sources = [path for path in sources_of(ROOT / name) if "rivals" not in path.parts]
    assert [p.name for p in sources if p.name not in text and f"`{p.stem}`" not in text] == []


def operation_of(method, path):
    """What the contract has of a call."""
    for pattern, operations in CONTRACT["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path) and method in operations:
            return operations[method]
    raise AssertionError(f"the contract does not have {method} {path}")


def name_of(parameter):
    key = parameter.get("$ref", "").split("/")[-1]
    return CONTRACT["components"]["parameters"].get(key, parameter)["name"]


def validate(value, schema):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema cannot be had")
    whole = schema | {"components": CONTRACT["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def accepted_calls(name):
    """(line, method, path, parameters, JSON body or None) of each call by curl that is not refused."""
    lines = [line for line in shell_lines(name) if "curl " in line and "# status: " not in line]
    for line in lines:
        words = shlex.split(line[line.index("curl ") :], comments=True)
        url = urllib.parse.urlsplit(next(word for word in words if word.startswith(HERE)))
        options = dict(zip(words, words[1:]))
        has_body = {"-d", "-F", "--data-binary"} & set(options)
        body = json.loads(options["-d"]) if "-d" in options else None
        names = [word.split("=")[0] for word in url.query.split("&") if word]
        yield line, "post" if has_body else "get", url.path, names, body


@pytest.mark.parametrize("name", documents("curl "))
def test_every_call_is_one_of_the_contract(name):
    for line, method, path, names, body in accepted_calls(name):
        operation = operation_of(method, path)
        known = {name_of(parameter) for parameter in operation.get("parameters", [])}
        assert set(names) <= known, line
        if body is not None:
            validate(body, operation["requestBody"]["content"]["application/json"]["schema"])


def test_the_reference_shows_every_example_of_a_dot_product_in_the_contract():
    """So each is run, and its result compared, above."""
    content = CONTRACT["paths"]["/v1/dot"]["post"]["requestBody"]["content"]["application/json"]
    shown = [call[-1] for call in accepted_calls("proto/API.md")]
    examples = [example["value"] for example in content["examples"].values()]
    assert examples and [example for example in examples if example not in shown] == []


def test_the_reference_names_every_call_of_the_contract():
    """Of a model by the path of one; its versions are told once for all."""
    reference = (ROOT / "proto/API.md").read_text()
    paths = [path.replace("/versions/{version}", "") for path in CONTRACT["paths"]]
    paths = [path.format(model="dot", name="NAME", file="") for path in paths]
    assert [path for path in paths if path not in reference] == []


def test_the_reference_names_every_error_and_option(daemon):
    reference = (ROOT / "proto/API.md").read_text()
    rows = re.findall(r'X\(ERR_\w+, (\d+), "([a-z-]+)"', (ROOT / "proto/error.h").read_text())
    assert len(rows) > 20
    missing = [name for status, name in rows[1:] if f"| {status} | `{name}` |" not in reference]
    told = daemon.get("/v1/dot?nonesuch=1").problem(400, "bad-option")["detail"]
    options = re.search(r"known are ([\w, ]+)", told)[1].split(", ")
    missing += [name for name in options if f"`{name}`" not in reference]
    assert missing == []


def blocks(language):
    """(document and number, text) of every program in that language; tritonclient's are tried in
    tests/oip."""
    found = []
    for name in (
        "README.md",
        "clients/README.md",
        "clients/python/README.md",
        "clients/c/README.md",
    ):
        texts = re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
        found += [pytest.param(text, id=f"{name} {i}") for i, text in enumerate(texts)]
        found = [program for program in found if "tritonclient" not in program.values[0]]
    assert found
    return found


def told(program, comment):
    """What the program says that its print lines print."""
    lines = [line for line in program.splitlines() if "print" in line and comment in line]
    return [line.split(comment)[1].strip() for line in lines]


@pytest.mark.parametrize("program", blocks("python"))
def test_python_prints_what_it_says(url, program):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "clients/python")}
    command = [sys.executable, "-c", program.replace(HERE, url)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PROGRAM_S
    )
    assert done.stdout.splitlines() == told(program, "  # "), done.stderr


@pytest.mark.parametrize("program", blocks("c"))
def test_c_prints_what_it_says(binary, url, tmp_path, program):
    library = binary.parent / "clients/c/libdotd.so"
    if not library.exists():
        pytest.skip("built without libcurl")
    cache = (binary.parent / "CMakeCache.txt").read_text()
    sanitizers = re.search(r"^DOTD_SANITIZE:STRING=(.+)$", cache, re.MULTILINE)
    more = [f"-fsanitize={sanitizers[1]}"] if sanitizers else []
    (tmp_path / "program.c").write_text(program.replace(HERE, url))
    places = [f"-I{ROOT}/clients/c", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}"]
    command = ["cc", "-Wall", "-Wextra", "-Werror", *more, "program.c", *places, "-ldotd", "-lcurl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    environment = os.environ | SANITIZERS | {"no_proxy": "*"}
    done = subprocess.run(
        [tmp_path / "a.out"], env=environment, capture_output=True, text=True, timeout=PROGRAM_S
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, told(program, "// ")), done.stderr
