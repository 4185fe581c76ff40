"""Fixtures of every folder: the real binary on a free port, watched for sanitizer reports, stopped
by SIGTERM. A folder's own conftest.py adds to them."""

import os
import subprocess

import pytest

from client import ROOT, SANITIZERS, Daemon
from load import Fault

# By itself a daemon's budget is a quarter of the machine's memory: AddressSanitizer takes half a
# second to forget that when the daemon stops.
BUDGET = {"memory_budget_bytes": 256 << 20}
PLACED_BY_SIZE = {"cuda_min_bytes": 1 << 40}


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
        stderr_path = tmp_path / f"stderr-{len(started)}"
        started.append(Daemon(binary, stderr_path, **BUDGET | options))
        return started[-1]

    yield start
    for daemon in started:
        daemon.stop()


@pytest.fixture(scope="session")
def has_faults(binary):
    """Whether it is built with DOTD_FAULTS."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DOTD_")}
    environment |= SANITIZERS | {"DOTD_FAULT": "/nonexistent"}
    tried = subprocess.run([binary, "--print-config"], env=environment, capture_output=True)
    return tried.returncode == 0


@pytest.fixture
def needs_faults(has_faults):
    if not has_faults:
        pytest.skip("built without DOTD_FAULTS")


@pytest.fixture
def start_faulty(needs_faults, start_daemon, tmp_path):
    """start_daemon() with a device cuda:0 that obeys daemon.fault; skipped where it is not built
    in. To measure it would be most of a start: auto is the CPU, unless a test says
    cuda_min_bytes=0."""
    fault = Fault(tmp_path / "fault")
    told = {"DOTD_FAULT": str(fault.path)}

    def start(variables={}, **options):
        daemon = start_daemon(variables=told | variables, **PLACED_BY_SIZE | options)
        daemon.fault = fault
        return daemon

    yield start
    fault.say("")  # nothing is to hang while the daemons stop


@pytest.fixture(scope="module")
def shared_daemon(binary, tmp_path_factory):
    daemon = Daemon(binary, tmp_path_factory.mktemp("daemon") / "stderr", cuda="off", **BUDGET)
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared_daemon):
    """Default settings, no CUDA, shared by a file's tests; each must leave it unharmed."""
    yield shared_daemon
    shared_daemon.check()
