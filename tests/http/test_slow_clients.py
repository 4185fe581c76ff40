"""Clients that drip, leave in the middle or never read: closed in time, the next unharmed."""

import json
import socket
import struct
import threading

import pytest

from client import get, post

HEAD = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 20_000
JSON = "Content-Type: application/json"
PAUSE_S = 0.02


def closed_or_408(wire):
    answers = wire.answers_until_closed()
    assert [answer.status for answer in answers] in ([], [408]), answers
    for answer in answers:
        answer.problem(408, "receive-timeout")


def serves(daemon):
    return daemon.dot({"a": [1, 2], "b": [3, 4]}).ok()["result"] == 11.0


@pytest.mark.every_build
def test_a_dripping_head_is_cut_while_others_are_served(start_daemon):
    daemon = start_daemon(head_timeout_ms=500)
    with daemon.wire() as wire:
        dripping = threading.Thread(target=wire.drip, args=(HEAD, PAUSE_S))
        dripping.start()
        while dripping.is_alive():
            assert serves(daemon)
        closed_or_408(wire)


@pytest.mark.every_build
def test_a_dripping_body_is_cut_while_others_are_served(start_daemon):
    daemon = start_daemon(body_timeout_ms=500)
    with daemon.wire() as wire:
        data = post("/v1/dot", '{"a":[' + "1," * 10_000, JSON)
        wire.send(data[:200])
        dripping = threading.Thread(target=wire.drip, args=(data[200:], PAUSE_S))
        dripping.start()
        while dripping.is_alive():
            assert serves(daemon)
        closed_or_408(wire)


def test_a_client_that_says_nothing_is_closed(start_daemon):
    daemon = start_daemon(head_timeout_ms=300, idle_timeout_ms=300)
    with daemon.wire() as wire:
        closed_or_408(wire)


def test_an_idle_connection_is_closed(start_daemon):
    daemon = start_daemon(idle_timeout_ms=300)
    with daemon.wire() as wire:
        wire.send(get("/livez"))
        assert wire.answer().status == 200
        assert wire.answer() is None


def test_half_a_body_and_silence_is_408(start_daemon):
    daemon = start_daemon(body_timeout_ms=300)
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", '{"a":[1,2],"b":[3,4]}', JSON)[:-5])
        closed_or_408(wire)
    assert serves(daemon)


@pytest.mark.every_build
@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_leaves_in_the_middle_frees_its_memory(start_daemon, reset):
    daemon = start_daemon()
    for i in range(20):
        wire = daemon.wire()
        wire.send(
            post("/v1/dot?dtype=f32", bytes(1 << 20), "Content-Type: application/octet-stream")[
                : (i + 1) << 14
            ]
        )
        if reset:
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()
    daemon.wait_status(lambda status: status["memory"]["used_bytes"] == 0)
    assert serves(daemon)


def many_results(count):
    """A small request with a large answer."""
    return json.dumps({"a": [[[0.1]]] * count, "b": [[0.3]] * count})


def test_a_client_that_never_reads_is_closed(start_daemon):
    daemon = start_daemon(write_timeout_ms=500)
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", many_results(700), JSON))
        daemon.wait_status(lambda status: status["requests"]["completed_total"] >= 1)
        daemon.wait_status(lambda status: status["connections"]["open"] == 1)
        try:
            data = wire.reader.read()
        except ConnectionResetError:
            data = b""
        assert not data.endswith(b"}") and not data.endswith(b"}\n")
    assert serves(daemon)


def test_a_client_that_reads_slowly_gets_everything(daemon):
    with daemon.wire() as wire:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        wire.send(post("/v1/dot", many_results(60), JSON))
        assert len(wire.answer().ok()["result"]) == 60


def test_requests_without_reading_do_not_pile_up(start_daemon):
    daemon = start_daemon(write_timeout_ms=500)
    with daemon.wire() as wire:
        wire.socket.settimeout(1)
        request = get("/v1/limits")
        try:
            for _ in range(100):
                wire.socket.sendall(request * 1000)
        except (TimeoutError, ConnectionError):
            pass
        assert serves(daemon)
