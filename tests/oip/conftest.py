"""Fixtures: tritonclient as PyPI has it; without it the tests report skipped."""

import functools

import pytest


@pytest.fixture
def start_daemon(start_daemon):
    return functools.partial(start_daemon, cuda="off")


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
