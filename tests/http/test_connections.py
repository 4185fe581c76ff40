"""Many requests on a connection, many connections at once, limits told before a body comes."""

import contextlib
import json
import signal

import numpy as np
import pytest

from client import DEADLINE_S, ask, get, post

JSON = "Content-Type: application/json"
RAW = "Content-Type: application/octet-stream"


def numbered(i):
    """A request whose answer is i."""
    return post("/v1/dot", json.dumps({"a": [i], "b": [1], "id": f"r-{i}"}), JSON)


def test_a_connection_carries_many_requests(daemon):
    connection = daemon.connect()
    connection.connect()
    port = connection.sock.getsockname()
    for i in range(100):
        assert ask(connection, "GET", f"/v1/dot?a={i}&b=2").ok()["result"] == 2.0 * i
        assert connection.sock is not None and connection.sock.getsockname() == port
    connection.close()


@pytest.mark.parametrize("count", [127, 128, 129, 256])
def test_a_crowd_that_asks_one_thread_at_once_is_answered(start_daemon, count):
    """128 is what libmicrohttpd takes at once. One that waits for more would do so for a minute."""
    daemon = start_daemon(http_threads=1, idle_timeout_ms=600_000, supervise="off")
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(daemon.wire()) for _ in range(count)]
        for wire in wires:
            wire.socket.settimeout(DEADLINE_S / 2)
            wire.send(numbered(1))
            wire.answer().ok()
        daemon.process.send_signal(signal.SIGSTOP)
        for i, wire in enumerate(wires):
            wire.send(numbered(i))
        daemon.process.send_signal(signal.SIGCONT)
        assert [wire.answer().ok()["result"] for wire in wires] == [float(i) for i in range(count)]


def test_a_late_answer_is_not_kept_back_by_a_crowd_that_is_idle(start_faulty):
    daemon = start_faulty(http_threads=1, idle_timeout_ms=600_000, supervise="off")
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(daemon.wire()) for _ in range(150)]
        for wire in wires:
            wire.socket.settimeout(DEADLINE_S / 2)
            wire.send(numbered(1))
            wire.answer().ok()
        daemon.fault.say("hang")
        wires[0].send(get("/v1/dot?a=1&b=1&device=cuda&timeout_ms=100"))
        wires[0].answer().problem(504, "deadline")
        daemon.fault.say("")


@pytest.mark.every_build
@pytest.mark.parametrize("inline_terms", [0, 65536])
def test_pipelined_requests_are_answered_in_order(start_daemon, inline_terms):
    daemon = start_daemon(inline_terms=inline_terms)
    with daemon.wire() as wire:
        wire.send(b"".join(numbered(i) for i in range(50)))
        answers = [wire.answer().ok() for _ in range(50)]
    assert [answer["result"] for answer in answers] == [float(i) for i in range(50)]
    assert [answer["id"] for answer in answers] == [f"r-{i}" for i in range(50)]


@pytest.mark.every_build
@pytest.mark.parametrize("inline_terms", [0, 65536])
def test_two_hundred_connections_at_once_are_served(start_daemon, inline_terms):
    daemon = start_daemon(inline_terms=inline_terms)
    wires = [daemon.wire() for _ in range(200)]
    for turn in range(5):
        for i, wire in enumerate(wires):
            wire.send(numbered(1000 * turn + i))
        for i, wire in enumerate(wires):
            assert wire.answer().ok()["result"] == float(1000 * turn + i)
    for wire in wires:
        wire.close()


def test_close_is_honoured(daemon):
    with daemon.wire() as wire:
        wire.send(get("/v1/dot?a=1&b=2", "Connection: close"))
        assert [answer.ok()["result"] for answer in wire.answers_until_closed()] == [2.0]


def test_http_1_0_is_answered_and_closed(daemon):
    with daemon.wire() as wire:
        wire.send(b"GET /v1/dot?a=3&b=4 HTTP/1.0\r\n\r\n")
        data = wire.reader.read()
    assert data.startswith((b"HTTP/1.0 200 ", b"HTTP/1.1 200 ")), data[:40]
    assert b'"result": 12.0' in data or b'"result":12.0' in data


def test_a_request_may_come_byte_by_byte(daemon):
    with daemon.wire() as wire:
        assert not wire.drip(numbered(5), 0)
        assert wire.answer().ok()["result"] == 5.0


def test_more_connections_than_the_limit_wait_their_turn(start_daemon):
    daemon = start_daemon(max_connections=4)
    wires = [daemon.wire() for _ in range(8)]
    for i, wire in enumerate(wires):
        wire.send(numbered(i))
    for i, wire in enumerate(wires):
        assert wire.answer().ok()["result"] == float(i)
        wire.close()


def test_expect_continue_is_answered_before_the_body(daemon):
    body = np.array([1, 2, 3, 4], "<f4").tobytes()
    with daemon.wire() as wire:
        wire.send(post("/v1/dot?dtype=f32", body, RAW, "Expect: 100-continue")[: -len(body)])
        assert wire.answer().status == 100
        wire.send(body)
        assert wire.answer().ok()["result"] == 11.0


@pytest.mark.parametrize(
    "path, headers, status",
    [
        ("/v1/dot?dtype=f32", [RAW, "Content-Length: 5000"], 413),
        ("/v1/dot", [JSON, "Content-Length: 5000"], 413),
        ("/v1/dot", ["Content-Type: text/plain", "Content-Length: 50"], 415),
        ("/v1/dot?dtype=f32", [RAW, "Content-Length: 7"], 400),
        ("/nonesuch", [JSON, "Content-Length: 50"], 404),
        ("/livez", [JSON, "Content-Length: 50"], 405),
    ],
)
def test_a_refusal_known_by_the_head_comes_before_the_body(start_daemon, path, headers, status):
    daemon = start_daemon(max_body_bytes=4096)
    with daemon.wire() as wire:
        lines = [f"POST {path} HTTP/1.1", "Host: x", "Expect: 100-continue", *headers]
        wire.send("\r\n".join(lines).encode() + b"\r\n\r\n")
        assert wire.answer().status == status


def test_over_the_limit_names_limit_and_setting(start_daemon):
    daemon = start_daemon(max_body_bytes=4096)
    problem = daemon.raw(bytes(8192), "dtype=f32").problem(413, "too-large")
    assert (problem["limit"], problem["setting"]) == (4096, "max_body_bytes")
    assert daemon.raw(bytes(4096), "dtype=f32").ok()["n"] == 512


def test_chunks_over_the_limit_are_413(start_daemon):
    daemon = start_daemon(max_body_bytes=4096)
    pieces = iter([bytes(1024)] * 5)
    answer = daemon.raw(pieces, "dtype=f32", {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    answer.problem(413, "too-large")


def test_too_many_results_are_413(start_daemon):
    daemon = start_daemon(max_results=8)
    assert len(daemon.dot({"a": [[1]] * 8, "b": [1]}).ok()["result"]) == 8
    problem = daemon.dot({"a": [[1]] * 9, "b": [1]}).problem(413, "too-large")
    assert (problem["limit"], problem["setting"]) == (8, "max_results")
    assert "asks for 9 results" in problem["detail"]


def test_a_full_memory_budget_is_503_with_retry_after(start_daemon):
    daemon = start_daemon(memory_budget_bytes=4 << 20)
    body, empty = bytes(6 << 20), daemon.get("/v1/status").ok()["memory"]["used_bytes"]
    with daemon.wire() as wire:
        wire.send(post("/v1/dot?dtype=f32", body, RAW)[:-1])
        daemon.wait_status(lambda status: status["memory"]["used_bytes"] >= empty + len(body) // 2)
        answer = daemon.raw(body, "dtype=f32")
        answer.problem(503, "out-of-memory")
        assert int(answer.headers["Retry-After"]) >= 1
        wire.send(bytes(1))
        assert wire.answer().ok()["result"] == 0.0
    assert daemon.raw(body, "dtype=f32").ok()["result"] == 0.0


def test_operands_beyond_the_whole_budget_are_413(start_daemon):
    daemon = start_daemon(memory_budget_bytes=1 << 20)
    problem = daemon.raw(bytes(1 << 22), "dtype=f32").problem(413, "too-large")
    assert (problem["limit"], problem["setting"]) == (1 << 20, "memory_budget_bytes")
    assert daemon.raw(bytes(4096), "dtype=f32").ok()["n"] == 512


def test_an_early_refusal_is_not_lost_while_the_body_is_still_being_sent(start_daemon):
    daemon = start_daemon(max_body_bytes=1 << 20)
    for _ in range(5):
        daemon.raw(bytes(16 << 20), "dtype=f32").problem(413, "too-large")
