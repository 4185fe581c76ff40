"""Clients that drip, leave in the middle or never read: closed in time, the next unharmed."""

import json
import socket
import threading

import pytest

from client import Wire, get, post

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
    daemon = start_daemon(head_timeout_ms=1000)
    with daemon.wire() as wire:
        dripping = threading.Thread(target=wire.drip, args=(HEAD, PAUSE_S))
        dripping.start()
        while dripping.is_alive():
            assert serves(daemon)
        closed_or_408(wire)


@pytest.mark.every_build
def test_a_dripping_body_is_cut_while_others_are_served(start_daemon):
    daemon = start_daemon(body_timeout_ms=1000)
    with daemon.wire() as wire:
        data = post("/v1/dot", '{"a":[' + "1," * 10_000, JSON)
        wire.send(data[:200])
        dripping = threading.Thread(target=wire.drip, args=(data[200:], PAUSE_S))
        dripping.start()
        while dripping.is_alive():
            assert serves(daemon)
        closed_or_408(wire)


def test_a_client_that_says_nothing_is_closed(start_daemon):
    daemon = start_daemon(head_timeout_ms=1000, idle_timeout_ms=1000)
    with daemon.wire() as wire:
        closed_or_408(wire)


def test_an_idle_connection_is_closed(start_daemon):
    daemon = start_daemon(idle_timeout_ms=1000)
    with daemon.wire() as wire:
        wire.send(get("/livez"))
        assert wire.answer().status == 200
        assert wire.answer() is None


@pytest.mark.every_build
def test_a_refused_body_that_does_not_end_hears_why(daemon):
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", b"abc", "Content-Type: text/plain").replace(b": 3", b": 1000"))
        wire.answer().problem(415, "unsupported-media-type")
        assert wire.answer() is None
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", b"not").replace(b": 3", b": 1000"))
        wire.answer().problem(400, "bad-syntax")


@pytest.mark.every_build
def test_pipelined_requests_before_a_half_close_are_all_answered(daemon):
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", b'{"a":[2],"b":[3]}') * 20)
        wire.socket.shutdown(socket.SHUT_WR)
        assert [answer.ok()["result"] for answer in wire.answers_until_closed()] == [6.0] * 20


def test_more_parameters_than_there_are_are_refused_and_forgotten(daemon):
    for _ in range(3):
        with daemon.wire() as wire:
            wire.send(b"GET /livez?" + b"x&" * 1100 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            wire.answer().problem(400, "bad-option")
            assert wire.answer() is None
    daemon.wait_status(lambda status: status["requests"]["in_flight"] == 1)


def test_answers_that_nobody_reads_stay_within_the_budget(start_daemon):
    """Each is some 13 MB of brackets; the third finds the budget full."""
    daemon = start_daemon(memory_budget_bytes=32 << 20, max_results=1 << 20)
    target = f"/v1/dot?dtype=float32&shape_a={1 << 19},0&shape_b=0"
    request = post(target, b"", "Content-Type: application/octet-stream")
    wires = [daemon.wire() for _ in range(4)]
    for wire in wires:
        wire.send(request)
    status = daemon.wait_status(lambda status: status["requests"]["answers_5xx_total"] >= 1)
    assert 0 < status["memory"]["answer_bytes"] <= 32 << 20
    for wire in wires:
        wire.close()
    daemon.wait_status(lambda status: status["memory"]["answer_bytes"] == 0)


def test_half_a_body_and_silence_is_408(start_daemon):
    daemon = start_daemon(body_timeout_ms=300)
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", '{"a":[1,2],"b":[3,4]}', JSON)[:-5])
        closed_or_408(wire)
    assert serves(daemon)


@pytest.mark.every_build
@pytest.mark.parametrize("leave", [Wire.close, Wire.reset])
def test_a_client_that_leaves_in_the_middle_is_counted_and_frees_its_memory(start_daemon, leave):
    daemon = start_daemon()
    for i in range(20):
        wire = daemon.wire()
        wire.send(
            post("/v1/dot?dtype=f32", bytes(1 << 20), "Content-Type: application/octet-stream")[
                : (i + 1) << 14
            ]
        )
        daemon.wait_status(lambda status: status["requests"]["in_flight"] == 2)
        leave(wire)
        daemon.wait_idle()
    assert daemon.get("/v1/status").ok()["requests"]["clients_left_total"] == 20
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
