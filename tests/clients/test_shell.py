"""The script of curl calls against the daemon: every call of it is right, and there is one of every kind."""

import re
import subprocess

import pytest

from client import PROGRAM_S, ROOT


def run(url):
    command = ["clients/shell/try.sh", url]
    done = subprocess.run(command, capture_output=True, timeout=PROGRAM_S, cwd=ROOT)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


@pytest.mark.every_build
def test_every_call_is_answered_right(daemon, url):
    status, output = run(url)
    assert status == 0 and "\n0 wrong" not in output, output
    assert re.search(r"\d\d right, 0 wrong", output), output
    called = set(re.findall(re.escape(url) + r"(/[^\s\\?']*)", output))
    patterns = [re.sub(r"\{\w+\}", "[^/]+", path) for path in daemon.get("/").ok()["see"]]
    missing = [p for p in patterns if not any(re.fullmatch(p, path) for path in called)]
    assert missing == []


def test_it_fails_when_nobody_answers():
    status, output = run("http://127.0.0.1:1")
    assert status != 0, output
    assert output.count("\n") == 1 and "nothing answers" in output
