"""Fixtures: the clients' packages, the real binary, and servers that misbehave as they are told."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/http"), str(ROOT / "clients/python")]

from client import Daemon  # noqa: E402
from planted import Planted  # noqa: E402


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
def url(daemon):
    return f"http://127.0.0.1:{daemon.port}"


@pytest.fixture
def plant():
    """plant(answer, ...) starts a server that gives these answers in turn."""
    started = []

    def start(*answers, context=None):
        started.append(Planted(answers, context))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A folder with cert and key, of 127.0.0.1."""
    folder = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 1".split()
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names], cwd=folder, check=True, capture_output=True)
    return folder
