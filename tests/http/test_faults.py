"""A device that fails while it serves: jobs are answered all the same, and nothing wrong is."""

import json
import os
import socket
import subprocess

import pytest

from client import DEADLINE_S, REPORT, SANITIZERS, Wire, get, poll
from load import Fault, queued

LONG = 70_000  # products: a job that the device gets alone


def ask(daemon, **options):
    n = options.pop("n", 3)
    return daemon.dot({"a": [1] * n, "b": [2] * n, "device": "cuda"} | options).ok()


def test_the_faulty_device_answers_when_nothing_is_wrong(start_faulty):
    daemon = start_faulty()
    for n in (3, LONG):
        answer = ask(daemon, n=n)
        assert (answer["result"], answer["device"]) == (2.0 * n, "cuda:0")


@pytest.mark.every_build
@pytest.mark.parametrize("word", ["launch", "sticky", "memory"])
@pytest.mark.parametrize("n", [3, LONG])
def test_a_job_that_the_device_cannot_do_is_done_by_the_cpu(start_faulty, word, n):
    daemon = start_faulty()
    daemon.fault.say(word)
    answer = ask(daemon, n=n)
    daemon.fault.say("")
    assert (answer["result"], answer["device"]) == (2.0 * n, "cpu")


def test_the_access_log_tells_of_work_that_another_device_did(start_faulty):
    daemon = start_faulty(access_log="on", log_format="json")

    def told():
        lines = [json.loads(line) for line in daemon.stderr().splitlines()]
        asked = [line for line in lines if line.get("path", "").startswith("/v1/dot")]
        return [line["is_rerouted"] for line in asked]

    for word, n in (("", 3), ("memory", 3), ("memory", LONG)):
        daemon.fault.say(word)
        ask(daemon, n=n)
    assert daemon.raw(bytes(1 << 20), "dtype=float32&device=cuda").ok()["device"] == "cpu"
    poll(lambda: sorted(told()) == [0, 1, 1, 1], "a line for each request")


def test_a_device_short_of_memory_is_used_again(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("memory")
    assert ask(daemon)["device"] == "cpu"
    daemon.fault.say("")
    assert ask(daemon)["device"] == "cuda:0"


@pytest.mark.every_build
def test_everything_that_waits_for_a_device_that_fails_is_answered(start_faulty):
    daemon = start_faulty()
    wires = [daemon.wire() for _ in range(20)]
    daemon.fault.say("hang")
    for i, wire in enumerate(wires):
        wire.send(get(f"/v1/dot?a={i}&b=2&device=cuda"))
        poll(daemon.fault.is_hanging, "the device does not hang")  # with the first one in hand
    daemon.wait_status(lambda status: queued(status) == 19)
    daemon.fault.say("launch")
    answers = [wire.answer().ok() for wire in wires]
    daemon.fault.say("")
    assert [answer["result"] for answer in answers] == [2.0 * i for i in range(20)]
    assert {answer["device"] for answer in answers} == {"cpu"}
    for wire in wires:
        wire.close()


def test_a_slow_device_is_only_slow(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("slow")
    assert ask(daemon)["device"] == "cuda:0"


@pytest.mark.parametrize(
    "word, why",
    [("wrong", "cuda:0: row 0"), ("launch", "told to fail"), ("memory", "cuda:0: the self-test")],
)
def test_a_device_that_fails_its_self_test_is_left_out(start_faulty, word, why):
    before = start_faulty()
    before.fault.say(word)
    before.stop()
    daemon = start_faulty()
    assert daemon.dot({"a": [1, 2], "b": [3, 4]}).ok()["device"] == "cpu"
    refused = daemon.dot({"a": [1], "b": [2], "device": "cuda"})
    refused.problem(503, "no-device")
    assert "Retry-After" not in refused.headers
    devices = daemon.get("/v1/devices").ok()
    assert devices["failed"] == 1 and devices["failure"].startswith(why)
    assert "dotd_devices_failed 1\n" in daemon.get("/metrics").body.decode()
    assert "devices_failed" in daemon.stderr()


@pytest.fixture
def start_activated(start_faulty, binary, tmp_path):
    """start_activated(fault) starts it as systemd does for a socket; returns the socket's port."""
    started = []
    listener = socket.create_server(("127.0.0.1", 0))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DOTD_")}

    def start(fault):
        script = f'exec env LISTEN_PID=$$ LISTEN_FDS=1 "{binary}" 3<&0 </dev/null'
        with open(tmp_path / "stderr", "wb") as stderr:
            started.append(
                subprocess.Popen(
                    ["sh", "-c", script],
                    stdin=listener,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    env=environment | SANITIZERS | {"DOTD_FAULT": str(fault.path)},
                )
            )
        return listener.getsockname()[1]

    yield start
    listener.close()
    for process in started:
        process.terminate()
        assert process.wait(timeout=DEADLINE_S) == 0
    assert not REPORT.search((tmp_path / "stderr").read_text())


def test_nothing_is_computed_before_the_self_test_has_passed(start_activated, tmp_path):
    fault = Fault(tmp_path / "fault")
    fault.say("hang")
    question = get("/v1/dot?a=1,2&b=3,4")
    with Wire(start_activated(fault)) as wire:
        poll(fault.is_hanging, "the self-test does not hang")
        wire.send(get("/readyz"))
        assert wire.answer().status == 503
        wire.send(question)
        refused = wire.answer()
        refused.problem(503, "starting")
        assert refused.headers["Retry-After"] == "1"
        fault.say("")

        def is_ready():
            wire.send(get("/readyz"))
            return wire.answer().status == 200

        poll(is_ready, "ready")
        wire.send(question)
        assert wire.answer().ok()["result"] == 11.0
