"""The programs that the documents show, run as they stand."""

import os
import re
import subprocess
import sys

import pytest

from client import ROOT, SANITIZERS

HERE = "http://127.0.0.1:8080"


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
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
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
        [tmp_path / "a.out"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, told(program, "// ")), done.stderr
