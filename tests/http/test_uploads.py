"""Long bodies that are read past the HTTP library: nothing of HTTP is lost by that."""

import signal
import socket

import numpy as np
import pytest

from cases import numbers
from client import Wire, ask, get, poll, post

RAW = "Content-Type: application/octet-stream"
MIB = 1 << 20
ROWS, PAIRS = "dtype=f4&rows", "dtype=f4&layout=pairs"  # held: not reduced as they come
LAYOUTS = ["dtype=f4", "dtype=f4&layout=interleaved;block=1000", "dtype=f4&device=cuda"]
LAYOUTS += [ROWS, f"{ROWS}&device=cuda", PAIRS]
HELPED = {"variables": {"DOTD_CORES": "8"}}  # the CPU's worker adds as well (server/stream.c)


def upload(query="dtype=f4", size=8 * MIB):
    """(request, its answer's result): so long that most of it is read past the library."""
    body = np.ones(size // 4, "<f4").tobytes()
    if ROWS in query:  # two of each operand
        n = size // 16
        query = query.replace("rows", f"shape_a=2,{n}&shape_b=2,{n}")
        return post("/v1/dot?" + query, body[: 16 * n], RAW), [n, n]
    if PAIRS in query:  # a short one, and what is left
        lengths = [1000, size // 8 - 1000]
        body = np.array([2, *lengths], "<u8").tobytes() + body[: 8 * sum(lengths)]
        return post("/v1/dot?" + query, body, RAW), lengths
    return post("/v1/dot?" + query, body, RAW), float(size // 8)


def connections(watcher):
    return ask(watcher, "GET", "/v1/status").ok()["connections"]


def batches_total(daemon):
    return daemon.get("/v1/status").ok()["devices"][0]["batches_total"]


@pytest.fixture(params=[*LAYOUTS, pytest.param(HELPED, id="helped")])
def road(request):
    """road(settings) is (daemon, query): the thread that reads makes the sum, with help or without,
    or a device does."""
    if request.param is HELPED:
        request.getfixturevalue("needs_faults")
        start = request.getfixturevalue("start_daemon")
        return lambda **settings: (start(cuda="off", **HELPED, **settings), LAYOUTS[0])
    if "cuda" in request.param:
        start = request.getfixturevalue("start_faulty")
        return lambda **settings: (start(**settings), request.param)
    start = request.getfixturevalue("start_daemon")
    return lambda **settings: (start(cuda="off", **settings), request.param)


@pytest.mark.every_build
def test_requests_before_and_after_an_upload_are_answered_in_order(road):
    daemon, query = road()
    request, result = upload(query)
    watcher = daemon.connect()
    before = connections(watcher)
    with daemon.wire() as wire:
        wire.send(get("/livez") + request + get("/livez") + request + get("/readyz"))
        assert wire.answer().ok() == {"live": True}
        answer = wire.answer()
        assert answer.ok()["result"] == result
        assert {"Date", "X-Request-Id", "Server-Timing"} <= set(answer.headers.keys())
        assert "Connection" not in answer.headers
        assert wire.answer().ok() == {"live": True}
        assert wire.answer().ok()["result"] == result
        assert wire.answer().ok() == {"ready": True}
    poll(lambda: connections(watcher)["open"] == 1, "only the watcher is left")
    assert connections(watcher)["accepted_total"] == before["accepted_total"] + 1
    watcher.close()


@pytest.mark.every_build
def test_uploads_of_any_length_follow_each_other(road):
    """About as long as they must be, and longer by less or more than what is waited for at once."""
    daemon, query = road()
    lengths = [MIB // 2 + more for more in (-8, 0, 8, 20_000, 40_000, 300_000)]
    lengths += [MIB, MIB + 8, MIB + 300_000, 2 * MIB - 8, 2 * MIB + 200_000]
    uploads = [upload(query, length) for length in lengths]
    with daemon.wire() as wire:
        for request, _ in uploads:
            wire.send(request)
        for _, result in uploads:
            assert wire.answer().ok()["result"] == result


@pytest.mark.every_build
@pytest.mark.parametrize("dtype", numbers("f4", "f8", "i1", "c8"))
def test_help_changes_no_bit(start_daemon, needs_faults, dtype):
    """Nor what is not a whole slice, or not aligned."""
    alone, helped = start_daemon(cuda="off"), start_daemon(cuda="off", **HELPED)
    count = 16 * MIB // np.dtype(dtype).itemsize + 2
    values = np.random.default_rng(7).integers(-(10**6), 10**6, 4 * count)
    body = values.astype("f4").tobytes()[: count * np.dtype(dtype).itemsize]
    request = post(f"/v1/dot?dtype={dtype}", body, RAW)
    sums, batches = [], []
    for daemon in alone, helped:
        before = batches_total(daemon)
        with daemon.wire() as wire:
            wire.send(request)
            answer = wire.answer().ok()
        sums.append(answer["result"])
        batches.append(batches_total(daemon) - before)
    assert sums[0] == sums[1]
    assert batches[0] == 1 < batches[1]  # what a thread computes itself counts as one


@pytest.mark.every_build
@pytest.mark.parametrize("pause_at", numbers(1000, 1, 300_000, 3 * MIB))
def test_the_last_bytes_may_come_late(road, pause_at):
    """However few they are: fewer than the socket waits for in the middle of a body."""
    daemon, query = road()
    request, result = upload(query)
    with daemon.wire() as wire:
        wire.send(request[:-pause_at])
        daemon.wait_status(lambda status: status["requests"]["in_flight"] == 2)
        for at in range(len(request) - pause_at, len(request), 40_001):
            wire.send(request[at : at + 40_001])
        assert wire.answer().ok()["result"] == result


@pytest.mark.parametrize(
    "old, new",
    [(b"Host: x", b"Host: x\r\nConnection: close"), (b" HTTP/1.1", b" HTTP/1.0")],
    ids=["asked for", "HTTP 1.0"],
)
def test_an_upload_may_be_the_last_request_of_its_connection(road, old, new):
    daemon, query = road()
    request, result = upload(query)
    with daemon.wire() as wire:
        wire.send(request.replace(old, new, 1))
        answer = wire.answer()
        assert answer.ok()["result"] == result and answer.headers["Connection"] == "close"
        assert wire.answer() is None


def test_who_closes_his_side_after_an_upload_is_answered(daemon):
    request, result = upload()
    with daemon.wire() as wire:
        wire.send(request)
        wire.socket.shutdown(socket.SHUT_WR)
        assert [answer.ok()["result"] for answer in wire.answers_until_closed()] == [result]


@pytest.mark.every_build
@pytest.mark.parametrize("leave", [Wire.close, Wire.reset])
def test_who_leaves_in_the_middle_of_an_upload_is_noticed(road, leave):
    daemon, query = road()
    request, _ = upload(query)
    wire = daemon.wire()
    wire.send(request[: 5 * MIB + 3])
    leave(wire)
    daemon.wait_idle()
    status = daemon.wait_status(lambda status: status["connections"]["open"] == 1)
    assert status["requests"]["clients_left_total"] == 1


@pytest.mark.every_build
def test_an_upload_that_does_not_end_is_told_so(start_daemon):
    daemon = start_daemon(cuda="off", body_timeout_ms=500)
    request, _ = upload()
    with daemon.wire() as wire:
        wire.send(request[:-1])
        wire.answer().problem(408, "receive-timeout")
        assert wire.answer() is None
    daemon.wait_idle()


@pytest.mark.every_build
def test_the_time_of_a_request_ends_in_the_middle_of_its_upload(road):
    daemon, query = road()
    request, _ = upload(query + "&timeout_ms=300")
    with daemon.wire() as wire:
        wire.send(request[:-1])
        wire.answer().problem(504, "deadline")
        wire.send(request[-1:])
        assert wire.answer() is None
    daemon.wait_idle()


@pytest.mark.every_build
@pytest.mark.parametrize(
    "query, size",
    [("dtype=f4", 8 * MIB), ("dtype=f4", 64 * MIB), (ROWS, 8 * MIB)],
    ids=["8 MiB", "64 MiB", "rows"],
)
def test_the_time_of_a_request_ends_while_a_device_has_its_upload(start_faulty, query, size):
    """All of it, or as much as it takes at once."""
    daemon = start_faulty()
    daemon.fault.say("hang")
    request, _ = upload(query + "&device=cuda&timeout_ms=1000", size)
    with daemon.wire() as wire:
        wire.send(request)
        wire.answer().problem(504, "deadline")
        assert wire.answer() is None
    daemon.fault.say("")
    daemon.wait_idle()


@pytest.mark.every_build
def test_a_server_that_ends_answers_an_upload_and_closes(road):
    daemon, query = road()
    request, result = upload(query)
    with daemon.wire() as wire:
        wire.send(request[:-1])
        daemon.wait_status(lambda status: status["requests"]["in_flight"] == 2)
        daemon.signal(signal.SIGTERM)
        poll(lambda: daemon.get("/readyz").status == 503, "draining")
        wire.send(request[-1:])
        answer = wire.answer()
        assert answer.ok()["result"] == result and answer.headers["Connection"] == "close"
        assert wire.answer() is None
    assert daemon.wait() == 0


@pytest.mark.every_build
def test_a_server_may_end_in_the_middle_of_an_upload(road):
    daemon, query = road(drain_timeout_ms=100)
    request, _ = upload(query)
    with daemon.wire() as wire:
        wire.send(request[:-1])
        daemon.wait_status(lambda status: status["requests"]["in_flight"] == 2)
        daemon.stop()


@pytest.mark.every_build
@pytest.mark.parametrize("accept", ["application/json", "application/octet-stream"])
def test_an_upload_of_many_short_rows_is_answered_whole(daemon, accept):
    """Too many, as JSON, for the answer to be sent past the library at once."""
    rows = 100_000
    body = np.ones(4 * rows + 4, "<f8").tobytes()
    target = f"/v1/dot?dtype=f8&shape_a={rows},4&shape_b=4"
    with daemon.wire() as wire:
        for _ in range(2):
            wire.send(post(target, body, RAW, f"Accept: {accept}"))
            answer = wire.answer()
            assert answer.status == 200
            if accept == "application/json":
                assert answer.json()["result"] == [4] * rows
            else:
                assert answer.body == np.full(rows, 4, "<f8").tobytes()
