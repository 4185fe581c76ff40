"""Fixtures of every folder: the real binary on a free port, watched for sanitizer reports, stopped by
SIGTERM. A folder's own conftest.py adds to them."""

import os
import subprocess

import pytest

from client import ROOT, SANITIZERS, Daemon
from load import Fault


@pytest.fixture(scope="session")
def binary():
    """The dotd under test: $DOTD_BINARY, or the dev build."""
    path = ROOT / os.environ.get("DOTD_BINARY", "build/dev/dotd")
    assert path.exists(), f"{path} is not built: cmake --workflow --preset dev"
    return path


@pytest.fixture
def start_daemon(binary, tmp_path):
    """start_daemon(inline_terms=0, ...) starts one for this test alone."""
    started = []

    def start(**options):
        started.append(Daemon(binary, tmp_path / f"stderr-{len(started)}", **options))
        return started[-1]

    yield start
    for daemon in started:
        daemon.stop()


@pytest.fixture
def start_faulty(binary, start_daemon, tmp_path):
    """start_daemon() with a device cuda:0 that obeys daemon.fault; skipped where it is not built in."""
    fault = Fault(tmp_path / "fault")
    variables = {"DOTD_FAULT": str(fault.path)}
    command = [str(binary), "--print-config"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DOTD_")}
    tried = subprocess.run(command, env=environment | SANITIZERS | variables, capture_output=True)
    if tried.returncode != 0:
        pytest.skip("built without DOTD_FAULTS")

    def start(**options):
        daemon = start_daemon(variables=variables, **options)
        daemon.fault = fault
        return daemon

    yield start
    fault.say("")  # nothing is to hang while the daemons stop


@pytest.fixture(scope="module")
def shared_daemon(binary, tmp_path_factory):
    daemon = Daemon(binary, tmp_path_factory.mktemp("daemon") / "stderr", cuda="off")
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared_daemon):
    """Default settings, no CUDA, shared by a file's tests; each must leave it unharmed."""
    yield shared_daemon
    shared_daemon.check()
