"""Allocations that fail in a running daemon: it stays up, says so or closes, and leaks nothing.

tests/fault/allocations_test fails every allocation of more requests, in one process with the client.
"""

import http.client
import mmap
import struct

import pytest

from client import SANITIZERS

JSON = ("POST", "/v1/dot", b'{"a":[1,2,3],"b":[4,5,6]}', "application/json")
PAIRS = ("POST", "/v1/dot", b'{"pairs":[{"a":[1,2],"b":[3,4]}]}', "application/json")
RAW = ("POST", "/v1/dot?dtype=f4&device=cpu", bytes(300_000), "application/octet-stream")
QUERY = ("GET", "/v1/dot?a=1,2,3&b=4,5,6", None, "application/json")
LAST = 2**64 - 1


class Allocations:
    """What the library in front of the daemon reads (tests/fault/allocations.h)."""

    def __init__(self, path):
        path.write_bytes(bytes(24))
        with open(path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 24)

    def fail(self, first, last):
        struct.pack_into("QQQ", self.page, 0, 0, 0, last)
        struct.pack_into("Q", self.page, 8, first)

    def allow(self):
        """Returns how many there were meanwhile."""
        struct.pack_into("Q", self.page, 8, 0)
        return struct.unpack_from("Q", self.page, 0)[0]


@pytest.fixture
def short_of_memory(binary, start_daemon, tmp_path):
    library = binary.parent / "tests/fault/liballocations.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    allocations = Allocations(tmp_path / "allocations")
    options = SANITIZERS["ASAN_OPTIONS"] + ":verify_asan_link_order=0"
    daemon = start_daemon(
        supervise="off",
        cuda="off",
        inline_terms=4,  # two of float64, as PAIRS has; the rest is a worker's
        variables={
            "LD_PRELOAD": str(library),
            "ALLOCATIONS_FILE": str(tmp_path / "allocations"),
            "ASAN_OPTIONS": options,
        },
    )
    return daemon, allocations


def ask(daemon, request):
    """The answer, or None when the connection ended without one."""
    method, path, body, media = request
    try:
        return daemon.call(method, path, body, {"Content-Type": media, "Connection": "close"})
    except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
        return None


def check(answer, right):
    if answer is None or answer.status == 500:  # the HTTP library's own
        return
    if answer.status == 503:
        answer.problem(503, "out-of-memory")
        assert answer.headers["Retry-After"]
        return
    assert answer.ok()["result"] == right


@pytest.mark.parametrize("request_", [JSON, PAIRS, RAW, QUERY], ids=["json", "pairs", "raw", "query"])
def test_every_allocation_of_a_request_may_fail(short_of_memory, request_):
    daemon, allocations = short_of_memory
    right = ask(daemon, request_).ok()["result"]
    first, is_met = 1, True
    while is_met:
        for last in (first, LAST):
            allocations.fail(first, last)
            answer = ask(daemon, request_)
            is_met = allocations.allow() >= first
            check(answer, right)
            assert ask(daemon, request_).ok()["result"] == right
            daemon.wait_status(lambda status: status["memory"]["used_bytes"] == 0)
        first += 1
    assert first > 5
    daemon.check()
