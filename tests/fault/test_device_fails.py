"""A device that is lost or hangs: its worker is replaced, and the next one is right again."""

import os
import signal

import pytest

from client import get, poll
from workers import Load, events, wait_alone, wait_event, worker, worker_pid

QUESTION = {"a": [1, 2, 3], "b": [4, 5, 6], "device": "cuda"}


def device_of(daemon):
    answer = daemon.dot(QUESTION).ok()
    assert answer["result"] == 32.0
    return answer["device"]


def wait_cuda(daemon):
    """Until a device answers; the CPU's answer would be no-device."""
    poll(lambda: daemon.dot(QUESTION).status == 200, "CUDA is not back")


@pytest.mark.every_build
def test_a_lost_device_is_back_with_the_next_worker_and_nothing_fails(start_faulty):
    daemon = start_faulty()
    assert device_of(daemon) == "cuda:0"
    with Load(daemon) as load:
        daemon.signal(signal.SIGSTOP)  # the supervisor: the next worker's device is well
        daemon.fault.say("sticky")
        assert device_of(daemon) == "cpu"
        daemon.fault.say("")
        daemon.signal(signal.SIGCONT)
        wait_event(daemon, "worker_ready", 2)
        load.wait_progress()
    assert load.failures() == []
    wait_alone(daemon, 2)
    assert worker(daemon)["last_reason"] == "a device was lost"
    assert device_of(daemon) == "cuda:0"


@pytest.mark.every_build
def test_a_worker_whose_device_hangs_is_replaced(start_faulty):
    daemon = start_faulty(hang_timeout_ms=2000)
    daemon.fault.say("hang")
    with daemon.wire() as wire:
        wire.send(get("/v1/dot?a=1&b=2&device=cuda"))
        assert wire.answer() is None
    lost = wait_event(daemon, "worker_lost")
    assert lost["reason"].startswith("a device has hung for ")
    daemon.fault.say("")  # the next one's self-test hangs as well
    wait_alone(daemon, 3)
    assert device_of(daemon) == "cuda:0"


@pytest.mark.every_build
def test_the_cpu_serves_while_the_device_of_the_next_worker_hangs(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("hang")
    os.kill(worker_pid(daemon), signal.SIGKILL)
    assert daemon.dot({"a": [1, 2, 3], "b": [4, 5, 6]}).ok()["device"] == "cpu"
    poll(daemon.fault.is_hanging, "the device does not hang")
    refused = daemon.dot(QUESTION)
    refused.problem(503, "no-device")
    assert refused.headers["Retry-After"] == "1"
    assert [line["is_stopgap"] for line in events(daemon, "worker_started")] == [0, 1, 0]
    daemon.fault.say("")
    wait_alone(daemon, 3)
    assert device_of(daemon) == "cuda:0"


def test_who_asks_for_a_lost_device_is_told_to_come_again(start_faulty):
    daemon = start_faulty()
    daemon.process.send_signal(signal.SIGSTOP)  # the supervisor: no next worker yet
    daemon.fault.say("launch")
    assert device_of(daemon) == "cpu"
    refused = daemon.dot(QUESTION)
    refused.problem(503, "no-device")
    assert refused.headers["Retry-After"] == "1"
    daemon.fault.say("")
    daemon.process.send_signal(signal.SIGCONT)
    wait_alone(daemon, 2)
    assert device_of(daemon) == "cuda:0"


@pytest.mark.parametrize("word", ["wrong", "launch", "memory"])
def test_a_device_that_fails_behind_a_stopgap_is_tried_until_it_is_well(start_faulty, word):
    daemon = start_faulty(restart_pause_max_ms=100)
    daemon.fault.say(word)
    os.kill(worker_pid(daemon), signal.SIGKILL)
    wait_event(daemon, "cuda_missed")
    assert daemon.dot({"a": [1, 2, 3], "b": [4, 5, 6]}).ok()["device"] == "cpu"
    refused = daemon.dot(QUESTION)
    refused.problem(503, "no-device")
    assert refused.headers["Retry-After"] == "1"
    daemon.fault.say("")
    wait_cuda(daemon)
    assert worker(daemon)["restarts_total"] == 1  # who was tried in vain served nobody


def test_a_worker_on_request_that_misses_its_device_serves_until_one_has_it(start_faulty):
    daemon = start_faulty(restart_pause_max_ms=100)
    daemon.fault.say("wrong")
    daemon.process.send_signal(signal.SIGUSR2)
    wait_alone(daemon, 2)
    assert daemon.get("/v1/devices").ok()["failed"] == 1
    refused = daemon.dot(QUESTION)
    refused.problem(503, "no-device")
    assert refused.headers["Retry-After"] == "1"
    wait_event(daemon, "cuda_missed", 3)
    daemon.fault.say("")
    wait_cuda(daemon)
    assert worker(daemon)["restarts_total"] == 0


def test_who_follows_a_lost_device_and_misses_it_serves_until_one_has_it(start_faulty):
    daemon = start_faulty(restart_pause_max_ms=100)
    daemon.fault.say("launch")
    assert device_of(daemon) == "cpu"
    wait_event(daemon, "cuda_missed", 2)
    assert daemon.dot({"a": [1, 2, 3], "b": [4, 5, 6]}).ok()["device"] == "cpu"
    daemon.fault.say("")
    wait_cuda(daemon)
    assert worker(daemon)["restarts_total"] == 1


def test_a_worker_on_request_that_is_to_have_no_device_misses_none(start_faulty, tmp_path):
    path = tmp_path / "dotd.ini"
    path.write_text("[devices]\ncuda = auto\n")
    daemon = start_faulty(config=path)
    path.write_text("[devices]\ncuda = off\n")
    daemon.process.send_signal(signal.SIGUSR2)
    wait_alone(daemon, 2)
    os.kill(worker_pid(daemon), signal.SIGKILL)
    wait_alone(daemon, 3)
    assert [line["is_stopgap"] for line in events(daemon, "worker_started")] == [0, 0, 0]
    assert events(daemon, "cuda_missed") == []


def test_where_no_device_was_open_the_next_worker_is_no_stopgap(start_daemon):
    daemon = start_daemon(cuda="off")
    os.kill(worker_pid(daemon), signal.SIGKILL)
    wait_alone(daemon, 2)
    assert [line["is_stopgap"] for line in events(daemon, "worker_started")] == [0, 0]


def test_a_lost_device_ends_a_daemon_that_nobody_supervises(start_faulty):
    daemon = start_faulty(supervise="off")
    daemon.fault.say("sticky")
    assert device_of(daemon) == "cpu"
    assert daemon.wait() == 3
