"""The Python client as a package: its types, and what an installation has."""

import os
import shutil
import subprocess
import sys

import pytest

from client import ROOT

PACKAGE = ROOT / "clients/python"


def tool(name):
    """Of $DOTD_VENV, where tests/run puts what PyPI has; else whatever the PATH leads to."""
    folder = os.environ.get("DOTD_VENV")
    path = shutil.which(name, path=f"{folder}/bin" if folder else None)
    if path is None:
        pytest.skip(f"no {name} here")
    return path


def test_the_types_are_complete(tmp_path):
    command = [tool("mypy"), "--strict", "--cache-dir", str(tmp_path), "dotd_client"]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_program_is_checked_against_them(tmp_path):
    """A wrong option is found before the program runs, and values have the types they are told."""
    program = tmp_path / "program.py"
    program.write_text(
        "from dotd_client import Client\n"
        "bound: float = Client().dot([1], [2], accuracy='fast').error_bound\n"
        "wrong: str = Client().dot([1], [2]).error_bound\n"
        "Client().dot([1], [2], acuracy='fast')\n"
    )
    command = [tool("mypy"), "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)]
    environment = os.environ | {"MYPYPATH": str(PACKAGE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = [line.split(":")[1] for line in done.stdout.splitlines() if " error: " in line]
    assert found == ["3", "4"], done.stdout


def test_it_installs_with_its_command(tmp_path):
    """From a copy: building leaves folders behind."""
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    command = [tool("pip"), "install", "--no-deps", "--no-build-isolation", "--quiet"]
    done = subprocess.run(
        [*command, "--target", str(target), str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (target / "dotd_client/py.typed").exists()
    environment = os.environ | {"PYTHONPATH": str(target)}
    command = [sys.executable, str(target / "bin/dotd-dot"), "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "usage: dotd-dot" in done.stdout, done.stderr
