"""Clients that leave before their answer: noticed at once, their jobs dropped, everybody counted."""

import contextlib
import json
import socket

import numpy as np
import pytest

from client import Wire, get, poll, post
from load import occupied, queued

RAW = "Content-Type: application/octet-stream"
WAYS = [Wire.close, Wire.reset]


def left(status):
    return status["requests"]["clients_left_total"]


@pytest.mark.every_build
@pytest.mark.parametrize("leave", WAYS)
def test_a_client_that_leaves_while_queued_is_noticed_and_its_job_never_computed(start_faulty, leave):
    daemon = start_faulty(access_log="on", log_format="json")
    with occupied(daemon):
        wires = [daemon.wire() for _ in range(10)]
        for wire in wires:
            wire.send(get("/v1/dot?a=1&b=2&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 10)
        for wire in wires:
            leave(wire)
        daemon.wait_status(lambda status: left(status) == 10)  # although the device still hangs
        before = daemon.get("/v1/devices").ok()["devices"][1]["jobs_total"]
    daemon.wait_idle()
    after = daemon.get("/v1/devices").ok()["devices"][1]["jobs_total"]
    assert after <= before + 1  # the one that was in hand
    lines = [json.loads(line) for line in daemon.stderr().splitlines()]
    assert sum(line["event"] == "request" and line["status"] == 499 for line in lines) == 10
    status = daemon.get("/v1/status").ok()["requests"]
    assert (status["answers_4xx_total"], status["answers_5xx_total"]) == (0, 0)


@pytest.mark.every_build
@pytest.mark.parametrize("leave", WAYS)
def test_a_client_that_leaves_gives_back_its_share_of_the_queue(start_faulty, leave):
    daemon = start_faulty(queue_jobs=4, client_share_percent=50)
    with occupied(daemon):
        in_hand = daemon.get("/v1/status").ok()["memory"]["used_bytes"]
        before = daemon.get("/v1/devices").ok()["devices"][1]
        for _ in range(3):
            wires = [daemon.wire() for _ in range(2)]
            for wire in wires:
                wire.send(post("/v1/dot?device=cuda", json.dumps({"a": [1] * 999, "b": [2] * 999})))
            daemon.wait_status(lambda status: queued(status) == 2)
            daemon.get("/v1/dot?a=1&b=2&device=cuda").problem(503, "busy")
            for wire in wires:
                leave(wire)
            daemon.wait_status(  # although the device hangs on
                lambda status: queued(status) == 0 and status["memory"]["used_bytes"] == in_hand
            )
    daemon.wait_idle()
    after = daemon.get("/v1/devices").ok()["devices"][1]
    assert after["cancelled_total"] == before["cancelled_total"] + 6
    assert after["jobs_total"] == before["jobs_total"] + 1  # the occupier's


@pytest.mark.every_build
@pytest.mark.parametrize("leave", WAYS)
def test_a_client_that_leaves_while_the_device_has_its_job_is_noticed(start_faulty, leave):
    daemon = start_faulty()
    daemon.fault.say("hang")
    wire = daemon.wire()
    wire.send(get("/v1/dot?a=1&b=2&device=cuda"))
    poll(daemon.fault.is_hanging, "the device does not hang")
    leave(wire)
    daemon.wait_status(lambda status: left(status) == 1 and status["connections"]["open"] == 1)
    daemon.fault.say("")
    daemon.wait_idle()


@pytest.mark.every_build
@pytest.mark.parametrize("leave", WAYS)
def test_clients_may_leave_as_soon_as_they_have_asked(start_faulty, leave):
    """Their connections have not been suspended yet."""
    daemon = start_faulty(http_threads=1)
    with occupied(daemon):
        for _ in range(20):
            wires = [daemon.wire() for _ in range(20)]
            for wire in wires:
                wire.send(get("/v1/dot?a=1&b=2&device=cuda"))
            for wire in wires:
                leave(wire)
            daemon.wait_status(
                lambda status: queued(status) == 0 and status["connections"]["open"] == 2
            )
    daemon.wait_idle()


@pytest.mark.every_build
def test_who_closes_his_side_is_answered_by_the_thread_that_read_him(daemon):
    with daemon.wire() as wire:
        wire.send(get("/v1/dot?a=1&b=2"))
        wire.socket.shutdown(socket.SHUT_WR)
        assert [answer.ok()["result"] for answer in wire.answers_until_closed()] == [2.0]


def test_who_closes_his_side_while_queued_has_left(start_faulty):
    daemon = start_faulty()
    with occupied(daemon), daemon.wire() as wire:
        wire.send(get("/v1/dot?a=1&b=2&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 1)
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.answer() is None
        daemon.wait_status(lambda status: left(status) == 1)


def test_who_closes_his_side_before_he_is_queued_has_left_too(start_faulty):
    daemon = start_faulty()
    with occupied(daemon), daemon.wire() as wire:
        request = post("/v1/dot?device=cuda", '{"a":[1],"b":[2]}')
        wire.send(request * 3)
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.answer() is None
        daemon.wait_status(lambda status: left(status) == 1)


@pytest.mark.every_build
def test_a_client_that_resets_while_a_device_has_part_of_its_body_is_noticed(start_faulty):
    """One that only closes is noticed when what it has sent before that is read."""
    daemon = start_faulty()
    daemon.fault.say("hang")
    query = "dtype=f4&layout=interleaved;block=4096&device=cuda"
    request, sent = memoryview(post("/v1/dot?" + query, bytes(64 << 20), RAW)), 0
    wire = daemon.wire()
    wire.socket.settimeout(0.1)  # it may not be read on
    while not daemon.fault.is_hanging():
        with contextlib.suppress(TimeoutError):
            sent += wire.socket.send(request[sent : sent + 65536])
    wire.reset()
    daemon.wait_status(lambda status: left(status) == 1 and status["connections"]["open"] == 1)
    daemon.fault.say("")
    daemon.wait_idle()


@pytest.mark.every_build
@pytest.mark.parametrize("inline_terms", [65536, 0])
@pytest.mark.parametrize("leave", WAYS)
@pytest.mark.parametrize("query", ["dtype=f4", "dtype=f4&layout=interleaved;block=64"])
def test_a_client_may_leave_anywhere_in_a_streamed_body(start_daemon, query, leave, inline_terms):
    daemon = start_daemon(inline_terms=inline_terms, cuda="off")
    request = post("/v1/dot?" + query, np.ones(1 << 21, "<f4").tobytes(), RAW)
    for part in range(1, 12):
        wire = daemon.wire()
        wire.send(request[: len(request) * part // 11])
        leave(wire)
    daemon.wait_idle()
    assert daemon.get("/v1/dot?a=1&b=2").ok()["result"] == 2.0
