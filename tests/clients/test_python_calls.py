"""The Python client's calls: connections, retries, deadlines, refusals."""

import array
import math
import os
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest

from client import DEADLINE_S, ROOT
from dotd_client import BadAnswer, Client, DeadlineExceeded, LateProblem, Problem, Unreachable
from planted import HANG_UP, RESET, SILENCE, Late, answer, json_result, problem, raw_result, short

LARGE = array.array("d", bytes(64 << 20))


@pytest.fixture
def client(url):
    with Client(url) as client:
        yield client


def test_calls_share_a_connection(plant):
    server = plant(*[raw_result(float(i)) for i in range(20)])
    with Client(server.url) as client:
        assert [client.dot([1.0], [2]).value for _ in range(20)] == list(range(20))
    assert {number for number, _, _ in server.requests} == {0}


@pytest.mark.every_build
def test_threads_share_a_client(client):
    wrong = []

    def work(first):
        for i in range(first, first + 50):
            if client.dot([float(i), 1], [2, 3]).value != 2 * i + 3:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i * 1000,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_no_more_connections_are_kept_than_the_pool_holds(plant):
    server = plant(*[raw_result(1.0)] * 3)
    with Client(server.url, pool_size=0) as client:
        for _ in range(3):
            client.dot([1.0], [1])
    assert {number for number, _, _ in server.requests} == {0, 1, 2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_process_opens_connections_of_its_own(plant):
    server = plant(raw_result(1.0), raw_result(2.0))
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import dotd_client\n"
        "client = dotd_client.Client(sys.argv[2]); client.dot([1.0], [1])\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(client.dot([1.0], [1]).value != 2.0)\n"
        "sys.exit(os.waitpid(child, 0)[1])"
    )
    command = [sys.executable, "-c", program, str(ROOT / "clients/python"), server.url]
    assert subprocess.run(command, timeout=DEADLINE_S).returncode == 0
    assert [number for number, _, _ in server.requests] == [0, 1]


def test_a_kept_connection_that_has_ended_is_replaced_without_a_word(plant):
    server = plant(raw_result(1.0), HANG_UP, raw_result(2.0))
    with Client(server.url, retries=0) as client:
        assert client.dot([1.0], [1]).value == 1.0
        assert client.dot([1.0], [1]).value == 2.0
    assert [number for number, _, _ in server.requests] == [0, 0, 1]


def test_a_connection_that_the_service_closes_is_not_used_again(plant):
    server = plant(raw_result(1.0, "Connection: close"), raw_result(2.0))
    with Client(server.url, retries=0) as client:
        assert [client.dot([1.0], [1]).value for _ in range(2)] == [1.0, 2.0]
    assert [number for number, _, _ in server.requests] == [0, 1]


def test_what_follows_an_answer_unasked_is_no_answer(plant):
    server = plant(raw_result(1.0) + raw_result(66.0), raw_result(2.0))
    with Client(server.url) as client:
        assert [client.dot([1.0], [1]).value for _ in range(2)] == [1.0, 2.0]
    assert [number for number, _, _ in server.requests] == [0, 1]


def test_a_word_about_the_silence_before_is_no_answer(plant):
    late = problem(408, "receive-timeout", "Connection: close")
    server = plant(raw_result(1.0), late, raw_result(2.0), late)
    with Client(server.url, retries=0) as client:
        assert [client.dot([1.0], [1]).value for _ in range(2)] == [1.0, 2.0]
    with Client(server.url, retries=0) as client, pytest.raises(Problem, match="408"):
        client.dot([1.0], [1])  # a new connection's is one


@pytest.mark.parametrize("status, name", [(503, "busy"), (429, "too-many")])
def test_a_call_that_is_put_off_is_made_again_when_told(plant, status, name):
    server = plant(*[problem(status, name, "Retry-After: 0")] * 2, raw_result(3.0))
    with Client(server.url) as client:
        assert client.dot([1.0], [3]).value == 3.0
    bodies = {body for _, _, body in server.requests}
    assert len(server.requests) == 3 and len(bodies) == 1 and len(bodies.pop()) == 16


def test_retry_after_is_waited_for(plant):
    server = plant(problem(503, "busy", "Retry-After: 1"), raw_result(3.0))
    begun = time.monotonic()
    with Client(server.url) as client:
        assert client.dot([1.0], [3]).value == 3.0
    assert time.monotonic() - begun >= 1


def test_no_retry_is_made_that_would_come_too_late(plant):
    server = plant(problem(503, "busy", "Retry-After: 3600", detail="the queue is full"))
    with Client(server.url) as client, pytest.raises(Problem) as caught:
        client.dot([1.0], [1])
    assert caught.value.retry_after_s == 3600 and len(server.requests) == 1


def test_retries_end(plant):
    server = plant(*[problem(503, "busy", "Retry-After: 0")] * 3)
    with Client(server.url, retries=2) as client, pytest.raises(Problem, match="busy"):
        client.dot([1.0], [1])
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "planted",
    [
        problem(503, "no-device"),
        problem(503, "busy", "Retry-After: soon"),
        problem(500, "device-fault", "Retry-After: 0"),
        problem(422, "bad-value"),
    ],
    ids=short,
)
def test_what_will_not_get_better_is_asked_once(plant, planted):
    server = plant(planted)
    with Client(server.url) as client, pytest.raises(Problem):
        client.dot([1.0], [1])
    assert len(server.requests) == 1


def test_retry_after_may_be_a_date(plant):
    past = "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"
    server = plant(problem(503, "draining", past), raw_result(3.0))
    with Client(server.url) as client:
        assert client.dot([1.0], [3]).value == 3.0


def test_a_connection_that_ends_before_the_answer_is_tried_again(plant):
    server = plant(HANG_UP, RESET, raw_result(3.0))
    with Client(server.url) as client:
        assert client.dot([1.0], [3]).value == 3.0
    server = plant(HANG_UP)
    with Client(server.url, retries=0) as client, pytest.raises(Unreachable):
        client.dot([1.0], [3])


def test_an_answer_that_breaks_off_is_not_asked_for_again(plant):
    server = plant(raw_result(3.0, "Connection: close")[:-3])
    with Client(server.url) as client, pytest.raises(Unreachable, match="5 of 8"):
        client.dot([1.0], [3])
    assert len(server.requests) == 1


def test_nobody_there_is_told_at_once():
    with Client("http://127.0.0.1:1") as client, pytest.raises(Unreachable, match="127.0.0.1:1"):
        client.dot([1.0], [1])
    assert issubclass(Unreachable, ConnectionError)


def test_silence_ends_with_the_timeout(plant):
    server = plant(SILENCE)
    with Client(server.url, timeout=0.2) as client, pytest.raises(DeadlineExceeded, match="0.2 s"):
        client.dot([1.0], [1])
    assert issubclass(DeadlineExceeded, TimeoutError)


def test_each_call_on_a_connection_waits_for_its_own_time(plant):
    """Longer than the one before it, and shorter."""
    server = plant(raw_result(1.0), Late(1.5, raw_result(2.0)), SILENCE)
    with Client(server.url, retries=0) as client:
        assert client.dot([1.0], [1], timeout=1).value == 1.0
        assert client.dot([1.0], [1], timeout=60).value == 2.0
        begun = time.monotonic()
        with pytest.raises(DeadlineExceeded, match="0.3 s"):
            client.dot([1.0], [1], timeout=0.3)
        assert 0.3 <= time.monotonic() - begun < 30
    assert {number for number, _, _ in server.requests} == {0}


def test_a_service_that_stops_reading_ends_with_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # the system takes connections for it
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with Client(url, timeout=0.5) as client, pytest.raises(DeadlineExceeded):
            client.dot(LARGE, LARGE)


def test_the_service_is_told_the_timeout(plant):
    server = plant(raw_result(1.0), raw_result(1.0))
    with Client(server.url, timeout=30) as client:
        client.dot([1.0], [1])
        client.dot([1.0], [1], timeout=2)
    told = [int(head[0].split("timeout_ms=")[1].split(" ")[0]) for _, head, _ in server.requests]
    assert 29000 < told[0] <= 30000 and 1000 < told[1] <= 2000


@pytest.mark.parametrize("timeout", [1e9, 1e300, math.inf])
def test_a_timeout_may_be_for_ever(client, timeout):
    assert client.dot([2.0], [3], timeout=timeout).value == 6.0
    assert client.dot(LARGE, LARGE, timeout=timeout).value == 0.0


def test_a_deadline_that_the_service_keeps_is_a_timeout_too(plant):
    server = plant(problem(504, "deadline", detail="not ready"))
    with Client(server.url) as client, pytest.raises(TimeoutError) as caught:
        client.dot([1.0], [1])
    assert isinstance(caught.value, LateProblem) and caught.value.status == 504


def test_a_problem_carries_its_document(start_daemon):
    daemon = start_daemon(max_body_bytes=1000)
    with Client(f"http://127.0.0.1:{daemon.port}") as client, pytest.raises(Problem) as caught:
        client.dot(bytes(2000), bytes(2000), dtype="float32")
    error = caught.value
    assert (error.status, error.name, error.type) == (413, "too-large", "/problems/too-large")
    assert (error.limit, error.setting) == (1000, "max_body_bytes")
    assert error.title and error.detail == error.document["detail"]
    assert error.detail in str(error)


def test_a_refusal_is_heard_while_the_body_goes_out(start_daemon):
    daemon = start_daemon(max_body_bytes=1000)
    with Client(f"http://127.0.0.1:{daemon.port}") as client:
        for _ in range(3):
            with pytest.raises(Problem, match="413 too-large"):
                client.dot(LARGE, LARGE)
        assert client.dot([1.0], [2]).value == 2.0


def test_a_token_goes_with_every_call(plant):
    server = plant(raw_result(1.0), answer(200, b"{}"))
    with Client(server.url, token="s3cr.et") as client:
        client.dot([1.0], [1])
        client.get("/v1/status")
    for _, head, _ in server.requests:
        assert "Authorization: Bearer s3cr.et" in head


@pytest.mark.parametrize("token", ["", "a b", "a\r\nb", "ä"])
def test_a_token_that_would_break_the_head_is_refused(token):
    with pytest.raises(ValueError, match="token"):
        Client("http://127.0.0.1:1", token=token)


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://u:p@x", "http://x/?a", "http://x:y", "http://x y"]
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ValueError):
        Client(url)


def test_the_path_of_the_address_comes_before_every_path(plant):
    server = plant(raw_result(1.0), answer(200, b'{"live": true}'))
    with Client(server.url + "/behind/") as client:
        client.dot([1.0], [1])
        assert client.get("/livez") == {"live": True}
    firsts = [head[0] for _, head, _ in server.requests]
    assert firsts[0].startswith("POST /behind/v1/dot?dtype=float64&timeout_ms=")
    assert firsts[1] == "GET /behind/livez HTTP/1.1"


def test_pages_are_read(client):
    assert client.get("/v1/devices")["devices"][0]["id"] == "cpu"
    with pytest.raises(Problem, match="404 not-found"):
        client.get("/nonesuch")
    for path in ("livez", "/a b", "/a\r\nb"):
        with pytest.raises(ValueError):
            client.get(path)


CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "planted",
    [
        CHUNKS + b'5;x=y\r\n{"a":\r\n3\r\n 1}\r\n0\r\nTrailer: x\r\n\r\n',
        b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"a": 1}',
        b'HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n{"a": 1}',
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answer(200, b'{"a": 1}'),
    ],
    ids=short,
)
def test_answers_may_be_framed_in_every_way(plant, planted):
    server = plant(planted, planted)
    with Client(server.url) as client:
        assert client.get("/x") == client.get("/x") == {"a": 1}


@pytest.mark.parametrize(
    "planted",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        CHUNKS + b"-1\r\n\r\n",
        CHUNKS + b"f" * 16 + b"\r\n\r\n",
        answer(200, b"<html>"),
        answer(200, b"{}"),
        answer(200, bytes(8), "Content-Type: application/octet-stream"),
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000 + b"\r\n\r\n",
    ],
    ids=short,
)
def test_what_is_no_answer_of_the_service_is_told(plant, planted):
    server = plant(planted)
    with Client(server.url) as client, pytest.raises(BadAnswer):
        client.dot([1.0], [1])


RAW = ("Content-Type: application/octet-stream", "Dotd-Dtype: float64")


@pytest.mark.parametrize(
    "planted, part",
    [
        (answer(200, bytes(12), *RAW), "value"),
        (answer(200, bytes(16), *RAW), "value"),
        (answer(200, bytes(16), *RAW), "bits"),
        (answer(200, bytes(8), *RAW, "Dotd-Shape: 3"), "value"),
        (answer(200, bytes(8), *RAW, "Dotd-Shape: many"), "shape"),
        (raw_result(1.0, "Dotd-Error-Bound: wide"), "error_bound"),
        (raw_result(1.0, "Server-Timing: compute;dur=long"), "timing"),
        (json_result(1.0, bits="one"), "value"),
        (json_result(1.0, bits=["0x0", "0x0"]), "bits"),
        (json_result(1.0, bits=["0x0", None], shape=[2]), "value"),
        (json_result(1.0, shape=5), "shape"),
        (json_result(1.0, flags=None), "flags"),
        (json_result(1.0, error_bound="small"), "error_bound"),
        (json_result(1.0), "timing"),
    ],
    ids=lambda of: of if isinstance(of, str) else "planted",
)
def test_a_part_of_a_result_that_cannot_be_read_is_told(plant, planted, part):
    with Client(plant(planted).url) as client:
        result = client.dot([1.0], [1])
    with pytest.raises(BadAnswer, match=f"{part} cannot be read"):
        getattr(result, part)


def test_an_answer_that_nests_too_deep_is_told(plant):
    with Client(plant(answer(200, b"[" * 200_000)).url) as client, pytest.raises(BadAnswer):
        client.dot([1.0], [1])


def test_a_proxys_own_words_become_a_problem(plant):
    server = plant(answer(502, b"<h1>Bad Gateway</h1>"))
    with Client(server.url) as client, pytest.raises(Problem, match="502 .*Bad Gateway"):
        client.dot([1.0], [1])


def test_tls_needs_a_certificate_that_is_trusted(plant, certificate):
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate / "cert", certificate / "key")
    server = plant(raw_result(5.0), raw_result(6.0), context=served)
    with Client(server.url) as client, pytest.raises(Unreachable, match="certificate"):
        client.dot([1.0], [1])
    trusted = ssl.create_default_context(cafile=certificate / "cert")
    with Client(server.url, ssl_context=trusted) as client:
        large = array.array("d", bytes(1 << 20))
        assert [client.dot(large, large).value for _ in range(2)] == [5.0, 6.0]
    assert len(server.requests[-1][2]) == 2 << 20
    assert server.requests[0][0] == server.requests[1][0]
