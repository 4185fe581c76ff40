"""SIGTERM and SIGINT: no new work, everything accepted is answered, exit status 0."""

import http.client
import json
import signal
import threading

import pytest

from client import ask, get, poll, post
from load import occupied, queued

JSON = "Content-Type: application/json"
BODY = '{"a":[1,2,3],"b":[4,5,6]}'


def wait_draining(daemon):
    """Until /readyz says that the drain has begun."""
    poll(lambda: daemon.get("/readyz").status == 503, "draining")


def half_sent(daemon):
    """A request whose body is on its way: begun, so the drain must wait for it."""
    wire = daemon.wire()
    data = post("/v1/dot", BODY, JSON)
    wire.send(data[:-10])
    daemon.wait_status(lambda status: status["requests"]["in_flight"] >= 2)
    return wire, data[-10:]


@pytest.mark.every_build
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_daemon_ends_with_0(start_daemon, number):
    daemon = start_daemon()
    with daemon.wire() as wire:
        wire.send(get("/livez"))
        assert wire.answer().status == 200
        daemon.signal(number)
        assert daemon.wait() == 0
        assert wire.answer() is None


@pytest.mark.every_build
def test_everything_queued_is_answered(start_faulty):
    daemon = start_faulty()
    with occupied(daemon):
        wires = [daemon.wire() for _ in range(50)]
        for i, wire in enumerate(wires):
            wire.send(get(f"/v1/dot?a={i}&b=2&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 50)
        daemon.signal(signal.SIGTERM)
        wait_draining(daemon)
    answers = [wire.answer() for wire in wires]
    assert daemon.wait() == 0
    assert [answer.ok()["result"] for answer in answers] == [2.0 * i for i in range(50)]
    assert {answer.headers["Connection"].lower() for answer in answers} == {"close"}


def test_a_body_on_its_way_is_waited_for(start_daemon):
    daemon = start_daemon()
    wire, rest = half_sent(daemon)
    daemon.signal(signal.SIGTERM)
    wait_draining(daemon)
    wire.send(rest)
    assert wire.answer().ok()["result"] == 32.0
    assert wire.answer() is None
    assert daemon.wait() == 0


def test_a_draining_daemon_says_so_and_takes_no_new_work(start_daemon):
    daemon = start_daemon()
    kept = daemon.connect()
    assert ask(kept, "GET", "/readyz").status == 200
    wire, rest = half_sent(daemon)
    daemon.signal(signal.SIGTERM)
    wait_draining(daemon)
    answer = ask(kept, "GET", "/readyz")
    assert (answer.status, answer.headers["Connection"].lower()) == (503, "close")
    assert answer.json()["reason"] == "draining"
    assert daemon.get("/livez").status == 200
    refused = daemon.dot(BODY)
    refused.problem(503, "draining")
    assert int(refused.headers["Retry-After"]) >= 1
    wire.send(rest)
    assert wire.answer().ok()["result"] == 32.0
    assert daemon.wait() == 0


def test_a_second_signal_leaves_at_once(start_daemon):
    daemon = start_daemon(drain_timeout_ms=3_600_000, body_timeout_ms=3_600_000)
    wire, _ = half_sent(daemon)
    daemon.signal(signal.SIGTERM)
    wait_draining(daemon)
    assert daemon.process.poll() is None
    daemon.insist()
    assert daemon.wait() == 1
    wire.close()


@pytest.mark.parametrize("supervise", ["on", "off"])
def test_two_signals_at_once_are_one_order(start_daemon, supervise):
    """timeout(1) sends one to the program and one to its group."""
    daemon = start_daemon(supervise=supervise, body_timeout_ms=3_600_000)
    wire, rest = half_sent(daemon)
    for number in signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT:
        daemon.signal(number)
    wait_draining(daemon)
    wire.send(rest)
    assert wire.answer().ok()["result"] == 32.0
    assert daemon.wait() == 0


def test_a_drain_does_not_outlast_its_timeout(start_daemon):
    daemon = start_daemon(drain_timeout_ms=300, body_timeout_ms=3_600_000)
    wire, _ = half_sent(daemon)
    daemon.signal(signal.SIGTERM)
    daemon.wait()
    wire.close()


def client(daemon, counts, stop):
    """Asks on kept-alive connections until told to stop; counts what came of it."""
    while not stop.is_set():
        try:
            connection = daemon.connect()
            while not stop.is_set():
                answer = ask(
                    connection, "POST", "/v1/dot", BODY, {"Content-Type": "application/json"}
                )
                right = answer.status == 200 and json.loads(answer.body)["result"] == 32.0
                counts["right" if right else f"status {answer.status}"] += 1
                if answer.headers["Connection"] == "close":
                    break
            connection.close()
        except http.client.RemoteDisconnected:
            counts["closed before an answer"] += 1
        except ConnectionError:
            if not stop.is_set():
                counts["refused"] += 1
            return


@pytest.mark.every_build
@pytest.mark.parametrize("inline_terms", [0, 65536])
def test_sigterm_under_load_loses_nothing_accepted(start_daemon, inline_terms):
    """Every request that the daemon logged as answered has reached its client whole."""
    daemon = start_daemon(inline_terms=inline_terms, access_log="on", log_format="json")
    counts = [
        dict.fromkeys(("right", "status 503", "closed before an answer", "refused"), 0)
        for _ in range(16)
    ]
    stop = threading.Event()
    threads = [threading.Thread(target=client, args=(daemon, count, stop)) for count in counts]
    for thread in threads:
        thread.start()
    daemon.wait_status(lambda status: status["requests"]["completed_total"] >= 500)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    stop.set()
    for thread in threads:
        thread.join()
    lines = [json.loads(line) for line in daemon.stderr().splitlines()]
    answered = [
        line
        for line in lines
        if line["event"] == "request" and line.get("path", "").startswith("/v1/dot")
    ]
    assert sum(line["status"] == 200 for line in answered) == sum(
        count["right"] for count in counts
    )
    assert sum(line["status"] == 503 for line in answered) == sum(
        count["status 503"] for count in counts
    )
    assert {line["status"] for line in answered} <= {200, 503}
