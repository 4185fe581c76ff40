"""Fixtures: the real binary, and tritonclient as PyPI has it; without it the tests report skipped."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/http"))

from client import Daemon  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "every_build: also run against the tsan and release builds")


@pytest.fixture(scope="session")
def binary():
    """The dotd under test: $DOTD_BINARY, or the dev build."""
    path = ROOT / os.environ.get("DOTD_BINARY", "build/dev/dotd")
    assert path.exists(), f"{path} is not built: cmake --workflow --preset dev"
    return path


@pytest.fixture
def start_daemon(binary, tmp_path):
    """start_daemon(max_body_bytes=100) starts one for this test alone."""
    started = []

    def start(**options):
        started.append(Daemon(binary, tmp_path / f"stderr-{len(started)}", cuda="off", **options))
        return started[-1]

    yield start
    for daemon in started:
        daemon.stop()


@pytest.fixture(scope="module")
def shared_daemon(binary, tmp_path_factory):
    daemon = Daemon(binary, tmp_path_factory.mktemp("daemon") / "stderr", cuda="off")
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared_daemon):
    yield shared_daemon
    shared_daemon.check()


@pytest.fixture
def triton():
    return pytest.importorskip("tritonclient.http", reason="tritonclient cannot be had")


@pytest.fixture
def connect(triton):
    """connect(daemon, concurrency=4): a client, closed when the test is over."""
    clients = []

    def open_client(daemon, **options):
        clients.append(triton.InferenceServerClient(f"127.0.0.1:{daemon.port}", **options))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


@pytest.fixture
def client(connect, daemon):
    return connect(daemon)
