"""A short form of the soak, which by itself takes a million requests: tests/fault/soak."""

import subprocess
import sys

import pytest

from client import PROGRAM_S, ROOT

REQUESTS = 4000


@pytest.mark.every_build
def test_nothing_is_lost_wrong_or_leaked_by_mixed_load_and_faults(binary, start_faulty):
    start_faulty().stop()  # skips where no device fails on demand
    command = [sys.executable, str(ROOT / "tests/fault/soak"), "--binary", str(binary), str(REQUESTS)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S)
    assert ended.returncode == 0, ended.stdout + ended.stderr
