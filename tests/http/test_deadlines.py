"""A request ends at its time, whatever the device does; what the device still has comes back later."""

import json
import signal

import numpy as np
import pytest

from client import get, poll, post
from load import occupied, queued

JSON = "Content-Type: application/json"
RAW = "Content-Type: application/octet-stream"
ON_DEVICE = {"a": [1], "b": [2], "device": "cuda"}


@pytest.mark.every_build
def test_a_job_that_a_device_does_not_give_back_is_answered_in_time(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("hang")
    request = ON_DEVICE | {"timeout_ms": 300}
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", json.dumps(request), JSON))
        poll(daemon.fault.is_hanging, "the device does not hang")
        problem = wire.answer().problem(504, "deadline")
        assert (problem["limit"], problem["pointer"]) == (300, "/timeout_ms")
        assert "the request's timeout_ms" in problem["detail"] and "setting" not in problem
        status = daemon.get("/v1/status").ok()  # the device has the operands still
        assert status["requests"]["in_flight"] == 2 and status["memory"]["used_bytes"] > 0
        wire.send(get("/v1/dot?a=3&b=4"))
        assert wire.answer().ok()["result"] == 12.0  # the connection goes on
    assert daemon.fault.is_hanging()
    daemon.fault.say("")
    daemon.wait_idle()


@pytest.mark.every_build
def test_a_job_that_waits_behind_another_is_answered_in_time_and_never_computed(start_faulty):
    daemon = start_faulty()
    with occupied(daemon), daemon.wire() as wire:
        wire.send(post("/v1/dot", json.dumps(ON_DEVICE | {"timeout_ms": 300}), JSON))
        wire.answer().problem(504, "deadline")
        daemon.wait_status(  # with the occupier
            lambda status: (queued(status), status["requests"]["in_flight"]) == (0, 2)
        )
        before = daemon.get("/v1/devices").ok()["devices"][1]
        assert before["expired_total"] == 1
    daemon.wait_idle()
    after = daemon.get("/v1/devices").ok()["devices"][1]["jobs_total"]
    assert after <= before["jobs_total"] + 1


def test_the_servers_own_timeout_is_kept_as_well(start_faulty):
    daemon = start_faulty(job_timeout_ms=200)
    daemon.fault.say("hang")
    problem = daemon.dot(ON_DEVICE | {"timeout_ms": 60_000}).problem(504, "deadline")
    assert (problem["limit"], problem["setting"]) == (200, "job_timeout_ms")
    assert "the setting job_timeout_ms" in problem["detail"] and "pointer" not in problem
    daemon.fault.say("")
    daemon.wait_idle()


def test_a_timeout_of_the_header_is_called_by_its_name(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("hang")
    problem = daemon.dot(ON_DEVICE, headers={"X-Timeout-Ms": "200"}).problem(504, "deadline")
    assert problem["limit"] == 200 and "the request's X-Timeout-Ms" in problem["detail"]
    assert "setting" not in problem and "pointer" not in problem
    daemon.fault.say("")
    daemon.wait_idle()


def test_many_deadlines_in_any_order_are_all_kept(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("hang")
    wires = [daemon.wire() for _ in range(40)]
    for i, wire in enumerate(wires):
        request = ON_DEVICE | {"timeout_ms": 100 + i * 37 % 40 * 10}
        wire.send(post("/v1/dot", json.dumps(request), JSON))
    for i, wire in enumerate(wires):
        assert wire.answer().problem(504, "deadline")["limit"] == 100 + i * 37 % 40 * 10
        wire.close()
    daemon.fault.say("")
    daemon.wait_idle()


@pytest.mark.every_build
def test_a_drain_waits_for_jobs_whose_clients_were_answered(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("hang")
    daemon.dot(ON_DEVICE | {"timeout_ms": 100}).problem(504, "deadline")
    daemon.signal(signal.SIGTERM)
    poll(lambda: daemon.get("/readyz").status == 503, "draining")
    assert daemon.get("/livez").status == 200
    daemon.fault.say("")
    assert daemon.wait() == 0


def test_a_body_that_is_late_hears_so_at_its_time(daemon):
    """Before body_timeout_ms, which is minutes; the rest of the body is not waited for."""
    for path, head in (
        ("/v1/dot?timeout_ms=200", JSON),
        ("/v1/dot", f"{JSON}\r\nX-Timeout-Ms: 200"),
    ):
        with daemon.wire() as wire:
            wire.send(post(path, '{"a":[1],"b":[2]}', head)[:-3])
            assert wire.answer().problem(504, "deadline")["limit"] == 200
            assert wire.answer() is None
    with daemon.wire() as wire:
        wire.send(post("/v1/dot?dtype=f4&timeout_ms=200", bytes(1 << 20), RAW)[:-1])
        wire.answer().problem(504, "deadline")
        assert wire.answer() is None
    daemon.wait_idle()


def test_a_time_that_is_over_with_the_last_byte_is_504(daemon):
    """Known from the body alone, so that nothing could be said before."""
    with daemon.wire() as wire:
        request = post("/v1/dot", '{"a":[1],"b":[2],"timeout_ms":1}', JSON)
        wire.send(request[:-1])
        daemon.wait_status(lambda status: status["requests"]["in_flight"] == 2)
        start = daemon.get("/v1/status").ok()["uptime_ms"]
        daemon.wait_status(lambda status: status["uptime_ms"] > start + 2)
        wire.send(request[-1:])
        assert wire.answer().problem(504, "deadline")["limit"] == 1


def test_the_header_is_an_option_as_others_are(daemon):
    def ask(body, query, value):
        return daemon.dot(body, query, {"X-Timeout-Ms": value})

    plain, timed = {"a": [2], "b": [3]}, {"a": [2], "b": [3], "timeout_ms": 5000}
    assert ask(plain, "", "5000").ok()["result"] == 6.0
    assert ask(timed, "", "5000").ok()["result"] == 6.0
    assert ask(timed, "?timeout_ms=5000", "5000").ok()["result"] == 6.0
    assert daemon.get("/v1/dot?a=2&b=3", {"X-Timeout-Ms": "5000"}).ok()["result"] == 6.0
    ask(plain, "?timeout_ms=4000", "5000").problem(400, "bad-option")
    ask(timed, "", "4000").problem(400, "bad-option")
    daemon.get("/v1/dot?a=2&b=3&timeout_ms=1000", {"X-Timeout-Ms": "5000"}).problem(
        400, "bad-option"
    )
    for value in ("0", "-1", "soon", "1.5", "99999999999999999999"):
        assert ask(plain, "", value).problem(422, "bad-value")["pointer"] == "/timeout_ms"
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", json.dumps(plain), JSON, "X-Timeout-Ms: 9", "X-Timeout-Ms: 9"))
        wire.answer().problem(400, "bad-option")


def test_a_time_beyond_counting_is_none(daemon):
    assert daemon.get(f"/v1/dot?a=2&b=3&timeout_ms={2**63 - 1}").ok()["result"] == 6.0


@pytest.mark.every_build
def test_a_body_that_waits_for_its_device_is_answered_in_time(start_faulty):
    """The connection sleeps in the middle of its body: the answer goes past the library."""
    daemon = start_faulty()
    daemon.fault.say("hang")
    body = np.zeros(1 << 23, "<f4").tobytes()
    with daemon.wire() as wire:
        wire.socket.settimeout(0.5)  # it is not read on, so sending ends here
        try:
            wire.socket.sendall(post("/v1/dot?dtype=f4&device=cuda&timeout_ms=400", body, RAW))
        except (TimeoutError, ConnectionError):
            pass
        wire.socket.settimeout(60)
        wire.answer().problem(504, "deadline")
    daemon.fault.say("")
    daemon.wait_idle()
