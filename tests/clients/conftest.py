"""Fixtures: servers that misbehave as they are told, a certificate; daemons without CUDA."""

import functools
import subprocess

import pytest

from planted import Planted


@pytest.fixture
def start_daemon(start_daemon):
    return functools.partial(start_daemon, cuda="off")


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
