"""The lab's thread and its queue: what is refused, dropped, or late, and what a drain waits for."""

import contextlib
import json
import signal

import pytest

from client import PROGRAM_S, Wire, poll, post
from experiments import CALLS, GOOD, ask


def test_the_lab_can_be_switched_off(start_daemon):
    daemon = start_daemon(lab="off", cuda="off")
    for call in CALLS:
        ask(daemon, call, **GOOD[call]).problem(404, "not-found")
        daemon.get(f"/v1/lab/{call}").problem(404, "not-found")
    assert daemon.get("/v1/kernels").ok()["kernels"]
    assert daemon.dot({"a": [1, 2], "b": [3, 4], "kernel": "tree"}).ok()["result"] == 11.0


def lab_queue(status):
    return status["lab"]["queued_jobs"]


LONG = {"n": 1 << 17, "runs": 20, "device": "cpu"}
PATIENT = {"cuda": "off", "job_timeout_ms": PROGRAM_S * 1000}  # the lab's thread yields to all others


@contextlib.contextmanager
def busy(daemon):
    """Inside, the lab's thread runs a long experiment; a second one waits behind it."""
    request = post("/v1/lab/race", json.dumps(LONG))
    with daemon.wire() as first, daemon.wire() as second:
        for wire in (first, second):
            wire.socket.settimeout(PROGRAM_S)
            wire.send(request)
        looks = 0  # in a row: on its way through the queue a job is seen there once at the most
        while looks < 5:
            status = daemon.wait_status(lambda status: status["requests"]["in_flight"] == 3)
            looks = looks + 1 if lab_queue(status) == 1 else 0
        yield first, second


@pytest.mark.every_build
def test_a_full_queue_refuses_with_retry_after(start_daemon):
    daemon = start_daemon(lab_jobs=2, **PATIENT)
    with busy(daemon) as (first, second), daemon.wire() as third:
        third.socket.settimeout(PROGRAM_S)
        third.send(post("/v1/lab/race", '{"n": 1, "runs": 1}'))
        daemon.wait_status(lambda status: lab_queue(status) == 2)
        refused = ask(daemon, "race", n=1)
        assert "lab_jobs" in refused.problem(503, "busy")["detail"]
        assert int(refused.headers["Retry-After"]) >= 1
        daemon.dot({"a": [1], "b": [1], "kernel": "tree"}).problem(503, "busy")
        assert daemon.dot({"a": [1, 2], "b": [3, 4]}).ok()["result"] == 11.0  # the service goes on
        assert daemon.get("/v1/kernels").status == 200
        for wire in (first, second, third):
            assert wire.answer().status == 200
    assert daemon.get("/v1/status").ok()["lab"]["rejected_total"] == 2


@pytest.mark.every_build
def test_a_full_queue_is_told_before_the_body_is_read(start_daemon):
    daemon = start_daemon(lab_jobs=2, **PATIENT)
    body = bytes(4 << 20)
    with busy(daemon), daemon.wire() as third:
        third.send(post("/v1/lab/race", '{"n": 1, "runs": 1}'))
        daemon.wait_status(lambda status: lab_queue(status) == 2)
        for expectation in ([], ["Expect: 100-continue"]):
            with daemon.wire() as wire:
                wire.send(post("/v1/lab/race", body, *expectation)[: -len(body)])
                refused = wire.answer()
                assert "lab_jobs" in refused.problem(503, "busy")["detail"]
                assert int(refused.headers["Retry-After"]) >= 1
    assert daemon.get("/v1/status").ok()["lab"]["rejected_total"] == 2


@pytest.mark.every_build
def test_long_bodies_are_read_where_they_keep_nobody_waiting(start_daemon):
    daemon = start_daemon(**PATIENT)
    cut_off = '{"a": [' + "1, " * 10_000
    with busy(daemon) as (first, second), daemon.wire() as third:
        third.socket.settimeout(PROGRAM_S)
        ask(daemon, "reduce", '{"a": [').problem(400, "bad-syntax")  # a short one: at once
        third.send(post("/v1/lab/rounding", cut_off))
        daemon.wait_status(lambda status: lab_queue(status) == 2)
        for wire in (first, second):
            assert wire.answer().status == 200
        assert third.answer().problem(400, "bad-syntax")["offset"] == len(cut_off)


@pytest.mark.every_build
def test_clients_that_leave_do_not_keep_the_lab(start_daemon):
    daemon = start_daemon(**PATIENT)
    with busy(daemon):
        for leave in (Wire.close, Wire.reset):
            wire = daemon.wire()
            wire.send(post("/v1/lab/rounding", json.dumps(GOOD["rounding"])))
            daemon.wait_status(lambda status: lab_queue(status) >= 2)
            leave(wire)
    daemon.wait_status(lambda status: status["requests"]["in_flight"] == 1)
    assert daemon.get("/v1/status").ok()["memory"]["used_bytes"] == 0
    assert ask(daemon, "reduce", **GOOD["reduce"]).ok()["value"] == 32.0


def test_a_client_that_leaves_in_the_middle_of_a_body_frees_it(start_daemon):
    daemon = start_daemon(cuda="off")
    wire = daemon.wire()
    wire.send(post("/v1/lab/reduce", " " * 100_000)[:-50_000])
    daemon.wait_status(lambda status: status["memory"]["used_bytes"] > 0)
    wire.close()
    daemon.wait_status(lambda status: status["memory"]["used_bytes"] == 0)


def test_an_experiment_that_takes_or_waits_too_long_is_504(start_daemon):
    daemon = start_daemon(job_timeout_ms=1, cuda="off")
    with daemon.wire() as first, daemon.wire() as second:
        for wire in (first, second):
            wire.send(post("/v1/lab/race", json.dumps(LONG)))
        for wire in (first, second):
            problem = wire.answer().problem(504, "deadline")
            assert (problem["limit"], problem["setting"]) == (1, "job_timeout_ms")


@pytest.mark.every_build
def test_an_experiment_under_way_is_answered_while_the_server_drains(start_daemon):
    daemon = start_daemon(drain_timeout_ms=PROGRAM_S * 1000, **PATIENT)
    with busy(daemon) as (first, second):
        daemon.signal(signal.SIGTERM)
        poll(lambda: daemon.get("/readyz").status == 503, "draining")
        ask(daemon, "reduce", **GOOD["reduce"]).problem(503, "draining")
        for wire in (first, second):
            answer = wire.answer()
            assert len(answer.ok()["runs"]) == LONG["runs"]
            assert answer.headers["Connection"].lower() == "close"
    assert daemon.wait() == 0


def test_a_drain_that_is_over_drops_what_waits(start_daemon):
    daemon = start_daemon(drain_timeout_ms=0, cuda="off")
    with busy(daemon):
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
