"""The Python client for asyncio: the same calls, side by side."""

import array
import asyncio
import socket
import ssl

import pytest

from dotd_client import AsyncClient, BadAnswer, DeadlineExceeded, Problem, Unreachable
from planted import HANG_UP, RESET, SILENCE, answer, problem, raw_result

LARGE = array.array("d", bytes(16 << 20))


def run(url, work, **settings):
    """The result of work(client) in a loop of its own."""

    async def main():
        async with AsyncClient(url, **settings) as client:
            return await work(client)

    return asyncio.run(main())


@pytest.mark.every_build
def test_many_calls_at_once_are_each_answered(url):
    async def work(client):
        calls = (client.dot([float(i), 1], [2, 3]) for i in range(100))
        return [result.value for result in await asyncio.gather(*calls)]

    assert run(url, work) == [2.0 * i + 3 for i in range(100)]


def test_calls_one_after_the_other_share_a_connection(plant):
    server = plant(*[raw_result(float(i)) for i in range(10)])

    async def work(client):
        return [(await client.dot([1.0], [1])).value for _ in range(10)]

    assert run(server.url, work) == list(range(10))
    assert {number for number, _, _ in server.requests} == {0}


def test_the_next_loop_gets_connections_of_its_own(plant):
    server = plant(*[raw_result(float(i)) for i in range(4)])
    client = AsyncClient(server.url, retries=0)

    async def work():
        return [(await client.dot([1.0], [1])).value for _ in range(2)]

    assert asyncio.run(work()) + asyncio.run(work()) == [0, 1, 2, 3]
    assert [number for number, _, _ in server.requests] == [0, 0, 1, 1]
    asyncio.run(client.close())  # in a loop that has none


def test_calls_at_once_wait_for_nobody(plant):
    server = plant(SILENCE, raw_result(2.0))

    async def work(client):
        silent = asyncio.create_task(client.dot([1.0], [1]))
        while not server.requests:
            await asyncio.sleep(0.001)
        value = (await client.dot([1.0], [2])).value
        silent.cancel()
        await asyncio.gather(silent, return_exceptions=True)
        return value, silent.cancelled()

    assert run(server.url, work) == (2.0, True)


def test_large_operands_and_pairs_and_pages(url):
    async def work(client):
        large = await client.dot(LARGE, LARGE)
        pairs = await client.dot_pairs([([1, 2], [3, 4]), ([5], [6])])
        return large.value, pairs.value, await client.get("/livez")

    assert run(url, work) == (0.0, [11, 30], {"live": True})


def test_a_refusal_is_heard_while_the_body_goes_out(start_daemon):
    daemon = start_daemon(max_body_bytes=1000)

    async def work(client):
        with pytest.raises(Problem, match="413 too-large"):
            await client.dot(LARGE, LARGE)
        return (await client.dot([1.0], [2])).value

    assert run(f"http://127.0.0.1:{daemon.port}", work) == 2.0


def test_a_call_that_is_put_off_is_made_again(plant):
    server = plant(problem(503, "busy", "Retry-After: 0"), HANG_UP, RESET, raw_result(3.0))
    assert run(server.url, lambda client: client.dot([1.0], [3])).value == 3.0
    assert len(server.requests) == 4


def test_a_kept_connection_that_has_ended_is_replaced(plant):
    server = plant(raw_result(1.0), HANG_UP, raw_result(2.0), raw_result(3.0))

    async def work(client):
        return [(await client.dot([1.0], [1])).value for _ in range(3)]

    assert run(server.url, work, retries=0) == [1.0, 2.0, 3.0]


def test_silence_ends_with_the_timeout(plant):
    server = plant(SILENCE)
    with pytest.raises(DeadlineExceeded, match="0.2 s"):
        run(server.url, lambda client: client.dot([1.0], [1]), timeout=0.2)


def test_a_service_that_stops_reading_ends_with_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(DeadlineExceeded):
            run(url, lambda client: client.dot(LARGE, LARGE), timeout=0.5)


def test_a_deadline_that_the_service_keeps_keeps_its_document(plant):
    server = plant(problem(504, "deadline", detail="not ready"))
    with pytest.raises(TimeoutError, match="504 deadline: not ready"):
        run(server.url, lambda client: client.dot([1.0], [1]))


@pytest.mark.parametrize(
    "planted, error",
    [
        (problem(422, "bad-value"), Problem),
        (raw_result(1.0, "Connection: close")[:-3], Unreachable),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000 + b"\r\n\r\n", BadAnswer),
        (b"SSH-2.0\r\n\r\n", BadAnswer),
        (answer(200, b"{}"), BadAnswer),
    ],
    ids=["problem", "breaks off", "endless head", "not HTTP", "not an answer"],
)
def test_failures_are_those_of_the_other_client(plant, planted, error):
    server = plant(planted)
    with pytest.raises(error):
        run(server.url, lambda client: client.dot([1.0], [1]))
    assert len(server.requests) == 1


def test_chunks_are_read(plant):
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = plant(chunked + b'5\r\n{"a":\r\n3;x\r\n 1}\r\n0\r\n\r\n', answer(200, b"[]"))

    async def work(client):
        return await client.get("/x"), await client.get("/x")

    assert run(server.url, work) == ({"a": 1}, [])
    assert {number for number, _, _ in server.requests} == {0}


def test_nobody_there_is_told_at_once():
    with pytest.raises(Unreachable, match="127.0.0.1:1"):
        run("http://127.0.0.1:1", lambda client: client.dot([1.0], [1]))


def test_tls_needs_a_certificate_that_is_trusted(plant, certificate):
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate / "cert", certificate / "key")
    server = plant(raw_result(5.0), context=served)
    with pytest.raises(Unreachable, match="certificate"):
        run(server.url, lambda client: client.dot([1.0], [1]))
    trusted = ssl.create_default_context(cafile=certificate / "cert")
    result = run(server.url, lambda client: client.dot(LARGE, LARGE), ssl_context=trusted)
    assert result.value == 5.0
