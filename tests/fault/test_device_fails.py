"""A device that is lost or hangs: the worker that met it is replaced, and the next one is right again."""

import pytest

from client import get
from workers import Load, wait_alone, wait_event, worker

QUESTION = {"a": [1, 2, 3], "b": [4, 5, 6], "device": "cuda"}


def device_of(daemon):
    answer = daemon.dot(QUESTION).ok()
    assert answer["result"] == 32.0
    return answer["device"]


@pytest.mark.every_build
def test_a_lost_device_is_back_with_the_next_worker_and_nothing_fails(start_faulty):
    daemon = start_faulty()
    assert device_of(daemon) == "cuda:0"
    with Load(daemon) as load:
        daemon.fault.say("sticky")
        assert device_of(daemon) == "cpu"
        daemon.fault.say("")
        wait_event(daemon, "worker_ready", 2)
        load.wait_progress()
    assert load.failures() == []
    wait_alone(daemon, 2)
    assert worker(daemon)["last_reason"] == "a device was lost"
    assert device_of(daemon) == "cuda:0"


@pytest.mark.every_build
def test_a_worker_whose_device_hangs_is_replaced(start_faulty):
    daemon = start_faulty(hang_timeout_ms=800)
    daemon.fault.say("hang")
    with daemon.wire() as wire:
        wire.send(get("/v1/dot?a=1&b=2&device=cuda"))
        assert wire.answer() is None
    daemon.fault.say("")  # or the next one's self-test would hang as well
    lost = wait_event(daemon, "worker_lost")
    assert lost["reason"].startswith("a device has hung for ")
    assert device_of(daemon) == "cuda:0"


def test_a_lost_device_ends_a_daemon_that_nobody_supervises(start_faulty):
    daemon = start_faulty(supervise="off")
    daemon.fault.say("sticky")
    assert device_of(daemon) == "cpu"
    assert daemon.wait() == 3
