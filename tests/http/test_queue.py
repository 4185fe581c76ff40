"""The queued road: work that waits for the device, shares it, is refused, or takes too long."""

import select
import threading

import pytest

from client import get, post
from load import occupied, queued


def test_small_work_takes_the_queued_road_when_told_to(start_daemon):
    daemon = start_daemon(inline_terms=0)
    before = daemon.get("/v1/devices").ok()["devices"][0]["jobs_total"]
    assert daemon.dot({"a": [1, 2], "b": [3, 4]}).ok()["result"] == 11.0
    assert daemon.get("/v1/devices").ok()["devices"][0]["jobs_total"] == before + 1


@pytest.mark.every_build
def test_waiting_jobs_become_one_batch(start_faulty):
    daemon = start_faulty()
    with occupied(daemon):
        wires = [daemon.wire() for _ in range(20)]
        for i, wire in enumerate(wires):
            wire.send(get(f"/v1/dot?a={i}&b=2&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 20)
    answers = [wire.answer().ok() for wire in wires]
    assert [answer["result"] for answer in answers] == [2.0 * i for i in range(20)]
    assert {answer["batch_size"] for answer in answers} == {20}
    for wire in wires:
        wire.close()


@pytest.mark.every_build
def test_more_clients_than_a_thread_holds_awake_wait_and_are_answered(start_faulty):
    daemon = start_faulty(http_threads=1, client_share_percent=100)
    with occupied(daemon):
        wires = [daemon.wire() for _ in range(100)]
        for i, wire in enumerate(wires):
            wire.send(get(f"/v1/dot?a={i}&b=2&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 100)
        assert daemon.get("/v1/dot?a=1&b=2").ok()["result"] == 2.0
    assert [wire.answer().ok()["result"] for wire in wires] == [2.0 * i for i in range(100)]
    for wire in wires:
        wire.close()


@pytest.mark.every_build
@pytest.mark.parametrize("clients", [1, 2, 20])
def test_who_looks_for_work_before_he_sleeps_misses_none(start_faulty, clients):
    """As threads do where there are cores enough; a device that is idle for longer sleeps after all."""
    daemon = start_faulty(variables={"DOTD_CORES": "8"}, http_threads=1)
    wires = [daemon.wire() for _ in range(clients)]
    for turn in range(100):
        for i, wire in enumerate(wires):
            wire.send(get(f"/v1/dot?a={turn}&b={i}&device=cuda"))
        answers = [wire.answer().ok() for wire in wires]
        assert [answer["result"] for answer in answers] == [float(turn * i) for i in range(clients)]
        assert {answer["device"] for answer in answers} == {"cuda:0"}
    with occupied(daemon):
        wires[0].send(get("/v1/dot?a=2&b=3&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 1)
        assert daemon.get("/v1/dot?a=1&b=2").ok()["result"] == 2.0
    assert wires[0].answer().ok()["result"] == 6.0
    for wire in wires:
        wire.close()


def test_a_full_queue_refuses_with_retry_after(start_faulty):
    daemon = start_faulty(queue_jobs=2, client_share_percent=100)
    with occupied(daemon):
        wires = [daemon.wire() for _ in range(2)]
        for wire in wires:
            wire.send(get("/v1/dot?a=1&b=2&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 2)
        answer = daemon.get("/v1/dot?a=1&b=2&device=cuda")
        answer.problem(503, "busy")
        assert int(answer.headers["Retry-After"]) >= 1
        assert daemon.get("/v1/dot?a=1&b=2&device=cpu").status == 200
    assert [wire.answer().status for wire in wires] == [200, 200]
    for wire in wires:
        wire.close()


@pytest.mark.every_build
def test_short_work_passes_long_work(start_daemon):
    daemon = start_daemon(inline_terms=0, cuda="off")
    rows, n = 512, 16384  # 4 * 10^9 products: far longer than what comes behind it
    path = f"/v1/dot?dtype=float32&shape_a={rows},1,{n}&shape_b={rows},{n}"
    with daemon.wire() as long:
        long.send(post(path, bytes(2 * rows * n * 4), "Content-Type: application/octet-stream"))
        daemon.wait_status(lambda status: status["requests"]["in_flight"] == 2)
        for i in range(20):
            assert daemon.get(f"/v1/dot?a={i}&b=2").ok()["result"] == 2.0 * i
        assert select.select([long.socket], [], [], 0)[0] == []  # nothing of its answer yet


def test_a_job_past_the_servers_own_timeout_names_the_setting(start_daemon):
    daemon = start_daemon(inline_terms=0, job_timeout_ms=1, cuda="off")
    rows, n = 64, 16384  # 67 million products take the CPU far longer
    query = f"dtype=float32&shape_a={rows},1,{n}&shape_b={rows},{n}&timeout_ms=50000"
    problem = daemon.raw(bytes(2 * rows * n * 4), query).problem(504, "deadline")
    assert (problem["limit"], problem["setting"]) == (1, "job_timeout_ms")


def test_probes_answer_while_the_device_is_busy(start_faulty):
    daemon = start_faulty()
    with occupied(daemon):
        for page in ("/livez", "/readyz", "/v1/status"):
            assert daemon.get(page).status == 200


def test_many_clients_on_the_queued_road_get_their_own_answers(start_daemon):
    daemon = start_daemon(inline_terms=0)
    wrong = []

    def client(number):
        connection = daemon.wire()
        for i in range(50):
            connection.send(get(f"/v1/dot?a={number}&b={i}"))
            result = connection.answer().ok()["result"]
            if result != float(number * i):
                wrong.append((number, i, result))
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_address_cannot_fill_the_queue(start_faulty):
    daemon = start_faulty(queue_jobs=4, client_share_percent=50)
    with occupied(daemon):
        wires = [daemon.wire() for _ in range(2)]
        for wire in wires:
            wire.send(get("/v1/dot?a=1&b=2&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 2)
        daemon.get("/v1/dot?a=1&b=2&device=cuda").problem(503, "busy")
    assert [wire.answer().status for wire in wires] == [200, 200]
    for wire in wires:
        wire.close()
