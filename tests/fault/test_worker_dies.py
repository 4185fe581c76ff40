"""A worker that dies, hangs or is told to go: replaced, and only what it had in its hands is lost."""

import os
import re
import signal
import subprocess

import pytest

from client import DEADLINE_S, REPORT, SANITIZERS, get, poll, post
from workers import BODY, Load, events, is_running, wait_alone, wait_event, worker, worker_pid

JSON = "Content-Type: application/json"


def half_sent(daemon):
    """A request whose body is on its way, and the rest of it."""
    wire = daemon.wire()
    data = post("/v1/dot", BODY, JSON)
    wire.send(data[:-10])
    daemon.wait_status(lambda status: status["requests"]["in_flight"] >= 2)
    return wire, data[-10:]


@pytest.mark.every_build
def test_a_killed_worker_is_replaced_and_clients_wait(start_daemon):
    daemon = start_daemon()
    assert worker(daemon) == {"generation": 1, "restarts_total": 0, "last_reason": None}
    first = worker_pid(daemon)
    os.kill(first, signal.SIGKILL)
    poll(lambda: not is_running(first), "its end")  # until then it may take a connection with it
    # nobody is refused meanwhile: the listening socket is the supervisor's
    poll(lambda: worker(daemon)["generation"] == 2, "the second worker")
    assert worker(daemon) == {
        "generation": 2,
        "restarts_total": 1,
        "last_reason": "died of SIGKILL",
    }
    assert daemon.dot(BODY).ok()["result"] == 32.0


@pytest.mark.every_build
def test_only_requests_in_the_hands_of_a_killed_worker_fail(start_daemon):
    daemon = start_daemon()
    with Load(daemon) as load:
        for generation in (1, 2, 3):
            os.kill(worker_pid(daemon, generation), signal.SIGKILL)
            wait_event(daemon, "worker_ready", generation + 1)
            load.wait_progress()
    # a client has one request in flight; a connection that was never used may be in those hands too
    assert len(load.failures()) <= 3 * len(load.clients)
    assert worker(daemon)["restarts_total"] == 3


def test_a_client_of_a_killed_worker_hears_of_it_at_once(start_daemon):
    daemon = start_daemon(body_timeout_ms=3_600_000)
    wire, _ = half_sent(daemon)
    os.kill(worker_pid(daemon), signal.SIGKILL)
    assert wire.answer() is None
    wait_event(daemon, "worker_ready", 2)
    wire.close()


def test_workers_that_die_again_and_again_are_started_with_growing_pauses(start_daemon):
    daemon = start_daemon(restart_pause_max_ms=150)
    for generation in (1, 2, 3, 4):
        wait_event(daemon, "worker_ready", generation)
        os.kill(worker_pid(daemon, generation), signal.SIGKILL)
    wait_event(daemon, "worker_ready", 5)
    assert [line["pause_ms"] for line in events(daemon, "worker_lost")] == [0, 100, 150, 150]
    assert daemon.dot(BODY).ok()["result"] == 32.0


def test_a_worker_that_stands_still_is_replaced(start_daemon):
    daemon = start_daemon(hang_timeout_ms=2000, body_timeout_ms=3_600_000)
    wire, _ = half_sent(daemon)
    first = worker_pid(daemon)
    os.kill(first, signal.SIGSTOP)
    lost = wait_event(daemon, "worker_lost")
    assert lost["reason"].startswith("the main thread has hung for ")
    assert wire.answer() is None
    assert daemon.dot(BODY).ok()["result"] == 32.0
    poll(lambda: not is_running(first), "the end of the hung worker")
    wire.close()


def test_a_worker_with_a_hung_http_thread_is_replaced(start_daemon):
    """A long job on the HTTP thread itself is as good as a hang, when so little time is allowed."""
    daemon = start_daemon(hang_timeout_ms=1000, inline_terms=1 << 40, http_threads=1)
    rows, n = 1024, 8192
    query = f"dtype=float32&device=cpu&accuracy=exact&shape_a={rows},1,{n}&shape_b={rows},{n}"
    head = post(f"/v1/dot?{query}", b"", "Content-Type: application/octet-stream")
    size = 2 * rows * n * 4
    with daemon.wire() as wire:
        wire.send(head.replace(b"Content-Length: 0", b"Content-Length: %d" % size) + bytes(size))
        assert wire.answer() is None
    assert events(daemon, "worker_lost")[0]["reason"].startswith("an HTTP thread has hung for ")
    assert daemon.dot(BODY).ok()["result"] == 32.0


def test_a_worker_that_is_sent_sigterm_serves_until_the_next_is_ready(start_daemon):
    daemon = start_daemon()
    with Load(daemon) as load:
        os.kill(worker_pid(daemon), signal.SIGTERM)
        wait_event(daemon, "worker_ready", 2)
        load.wait_progress()
    assert load.failures() == []
    wait_alone(daemon, 2)
    assert worker(daemon)["last_reason"] == "it was sent SIGTERM"


@pytest.mark.every_build
def test_without_its_supervisor_a_worker_answers_what_it_has_and_leaves(start_daemon):
    daemon = start_daemon(body_timeout_ms=3_600_000)
    wire, rest = half_sent(daemon)
    pid = worker_pid(daemon)
    os.kill(daemon.process.pid, signal.SIGKILL)
    daemon.wait()
    # the port is let go before the drain is over, so that a new daemon can have it
    poll(lambda: not accepts(daemon), "the port to be free")
    assert is_running(pid)
    wire.send(rest)
    assert wire.answer().ok()["result"] == 32.0
    poll(lambda: not is_running(pid), "the end of the worker")
    assert not REPORT.search(daemon.stderr())
    wire.close()


def accepts(daemon):
    try:
        daemon.wire().close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_second_signal_leaves_no_worker_behind(start_daemon):
    daemon = start_daemon(drain_timeout_ms=3_600_000, body_timeout_ms=3_600_000)
    wire, _ = half_sent(daemon)
    pid = worker_pid(daemon)
    daemon.signal(signal.SIGTERM)
    wait_event(daemon, "draining")
    daemon.insist()
    assert daemon.wait() == 1
    assert not is_running(pid)
    wire.close()


def test_a_signal_to_the_whole_group_drains_once(start_daemon):
    """As a terminal's Ctrl-C does, and a service manager."""
    daemon = start_daemon(body_timeout_ms=3_600_000)
    wire, rest = half_sent(daemon)
    os.kill(worker_pid(daemon), signal.SIGINT)
    daemon.signal(signal.SIGINT)
    poll(lambda: daemon.get("/readyz").status == 503, "draining")
    wire.send(rest)
    assert wire.answer().ok()["result"] == 32.0
    assert daemon.wait() == 0
    assert len(events(daemon, "worker_started")) == 1


def test_an_order_to_stop_is_not_lost_behind_the_same_signal_from_others(start_daemon):
    """Of two that wait to be taken the kernel keeps the first."""
    daemon = start_daemon()
    pid = worker_pid(daemon)
    os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGTERM)
    daemon.signal(signal.SIGTERM)
    wait_event(daemon, "stopping")
    os.kill(pid, signal.SIGCONT)
    assert daemon.wait() == 0


def test_the_supervisor_keeps_nothing_of_dead_workers(start_daemon):
    daemon = start_daemon(restart_pause_max_ms=0, cuda="off")
    descriptors = f"/proc/{daemon.process.pid}/fd"
    before = len(os.listdir(descriptors))
    for generation in range(1, 6):
        wait_event(daemon, "worker_ready", generation)
        os.kill(worker_pid(daemon, generation), signal.SIGKILL)
    wait_event(daemon, "worker_ready", 6)
    assert len(os.listdir(descriptors)) == before


def test_a_first_worker_that_cannot_start_ends_the_daemon(binary):
    """Said in one line, as a wrong setting is: here there are no descriptors for so many threads."""
    drop = "--bounding-set=-sys_resource --inh-caps=-sys_resource".split()
    keep_limit = ["setpriv", *drop] if os.geteuid() == 0 else []
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DOTD_")}
    result = subprocess.run(
        ["prlimit", "--nofile=64", *keep_limit, str(binary), "--listen=127.0.0.1:0",
         "--http_threads=200", "--log_level=error"],
        capture_output=True, text=True, timeout=DEADLINE_S, env=environment | SANITIZERS,
    )
    assert result.stdout == ""
    assert re.fullmatch(r"dotd: cannot start the HTTP threads: [^\n]*\n", result.stderr)
    assert result.returncode == 1


@pytest.mark.parametrize("value", ["", "0", "7", "4294967299", "seven"])
def test_a_stray_variable_makes_no_worker(binary, start_daemon, monkeypatch, value):
    monkeypatch.setenv("_DOTD_LIFELINE", value)
    daemon = start_daemon()
    assert worker(daemon)["generation"] == 1


def test_one_process_serves_when_that_is_asked_for(start_daemon):
    daemon = start_daemon(supervise="off")
    assert events(daemon, "worker_started") == []
    assert worker(daemon) == {"generation": 0, "restarts_total": 0, "last_reason": None}
    daemon.signal(signal.SIGUSR2)
    assert wait_event(daemon, "not_replaced")["reason"] == "supervise = off"
    with daemon.wire() as wire:
        wire.send(get("/livez"))
        assert wire.answer().status == 200
