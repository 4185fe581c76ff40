"""Raw bodies that are one row: reduced while they arrive, wherever, in memory that does not grow."""

import pathlib
import threading

import numpy as np
import pytest

from client import ask, poll, post
from load import queued

RAW = "Content-Type: application/octet-stream"
CHUNKED = {"Transfer-Encoding": "chunked"}
CODES = {
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "int8": "i1",
    "uint8": "u1",
    "int32": "i4",
    "int64": "i8",
    "complex64": "c8",
    "complex128": "c16",
}


def operands(code, n, seed=7):
    """Two vectors of numbers far apart, so that the order of additions would show."""
    generator = np.random.default_rng(seed)
    if code[0] in "iu":
        info = np.iinfo(code)
        return generator.integers(info.min, info.max, (2, n), code, endpoint=True)
    parts = generator.standard_normal((2, n, 2)) * 2.0 ** generator.integers(-7, 8, (2, n, 2))
    values = parts[..., 0] + 1j * parts[..., 1] if code[0] == "c" else parts[..., 0]
    return values.astype(code)


def interleaved(a, b, block):
    rounds = (part[i : i + block] for i in range(0, len(a), block) for part in (a, b))
    return b"".join(part.tobytes() for part in rounds)


def chunks(body, size=50_001):
    return iter([body[i : i + size] for i in range(0, len(body), size)])


def buffered(daemon, a, b, dtype):
    """The answer when both operands are held: where a chunked body is to be cut, only its end tells."""
    return daemon.raw(
        chunks(a.tobytes() + b.tobytes()), f"dtype={dtype}", CHUNKED, encode_chunked=True
    ).ok()


@pytest.fixture(params=["thread", "slices", "device"])
def road(request):
    """(daemon, query) for each way in which a stream is computed."""
    if request.param == "device":
        daemon = request.getfixturevalue("start_faulty")()
        return daemon, "&device=cuda"
    inline_terms = 65536 if request.param == "thread" else 0
    start = request.getfixturevalue("start_daemon")
    return start(cuda="off", inline_terms=inline_terms), ""


def test_every_road_gives_the_same_bits(road):
    daemon, query = road
    for dtype, code in CODES.items():
        n = (9 << 20) // np.dtype(code).itemsize + 5  # some slices of 2 MiB and a rest
        a, b = operands(code, n)
        expected = buffered(daemon, a, b, dtype)
        for order in "<>":
            x, y = (part.astype(order + code) for part in (a, b))
            name = f"%3E{code}" if order == ">" else dtype
            whole = daemon.raw(x.tobytes() + y.tobytes(), f"dtype={name}{query}").ok()
            assert (whole["bits"], whole["flags"]) == (expected["bits"], expected["flags"]), dtype
            body = interleaved(x, y, 1000)
            layout = f"dtype={name}&layout=interleaved;block=1000{query}"
            turns = daemon.raw(body, layout).ok()
            pieces = daemon.raw(chunks(body), layout, CHUNKED, encode_chunked=True).ok()
            for answer in (whole, turns, pieces):
                assert answer["bits"] == expected["bits"], (dtype, order)
                assert (answer["n"], answer["shape"]) == (n, [])


def test_timings_of_a_stream_add_up(road):
    daemon, query = road
    body = operands("f4", 1 << 21).tobytes()
    timing = daemon.raw(body, "dtype=f4" + query).ok()["timing_us"]
    parts = [value for name, value in timing.items() if name != "total"]
    assert min(parts) >= 0 and abs(sum(parts) - timing["total"]) < 0.01 * len(parts)


def test_fast_streams_keep_their_bound(road):
    daemon, query = road
    a, b = operands("f4", 1 << 20)
    exact = buffered(daemon, a, b, "float32")
    fast = daemon.raw(a.tobytes() + b.tobytes(), "dtype=f4&accuracy=fast" + query).ok()
    assert fast["accuracy"] == "fast" and fast["kernel"] != "exact"
    assert abs(fast["result"] - exact["result"]) <= fast["error_bound"] < 1e-3


def test_options_apply_to_streams(road):
    daemon, query = road
    a, b = operands("c8", 1 << 17)
    body = a.tobytes() + b.tobytes()
    for more in ("conjugate=true", "result_dtype=complex64", "diagnostics=true"):
        streamed = daemon.raw(body, f"dtype=c8&{more}{query}").ok()
        held = daemon.raw(chunks(body), f"dtype=c8&{more}", CHUNKED, encode_chunked=True).ok()
        for field in ("bits", "result_dtype", "error_bound", "sum_abs", "condition"):
            assert streamed.get(field) == pytest.approx(held.get(field)), (more, field)
    raw = daemon.raw(body, "dtype=c8" + query, {"Accept": "application/octet-stream"})
    assert raw.status == 200 and len(raw.body) == 16


def test_not_finite_elements_are_told(road):
    daemon, query = road
    a, b = operands("f4", 1 << 18)
    for value, text in ((np.nan, "NaN"), (np.inf, "Infinity")):
        x = a.copy()
        x[200_000], b[200_000] = value, 1
        answer = daemon.raw(x.tobytes() + b.tobytes(), "dtype=f4" + query).ok()
        assert (answer["result"], answer["result_text"]) == (None, text)


@pytest.mark.every_build
def test_short_interleaved_bodies_are_answered(daemon):
    a, b = np.arange(1, 6, dtype="<f4"), np.arange(10, 15, dtype="<f4")
    for block in (1, 2, 3, 5, 1000):
        body = interleaved(a, b, block)
        for layout in (f"interleaved;block={block}", f"interleaved%3Bblock={block}"):
            assert daemon.raw(body, f"dtype=f4&layout={layout}").ok()["result"] == 190.0
    assert daemon.raw(b"", "dtype=f4&layout=interleaved;block=8").ok()["result"] == 0.0
    body = a.tobytes() + b.tobytes()
    assert daemon.raw(body, "dtype=f4&layout=concat").ok()["result"] == 190.0


def test_layout_is_for_raw_bodies(daemon):
    query = "?layout=interleaved;block=2"
    daemon.dot({"a": [1], "b": [1]}, query).problem(400, "bad-option")
    daemon.get(f"/v1/dot{query}&a=1&b=1").problem(400, "bad-option")


@pytest.mark.parametrize(
    "query, status, name",
    [
        ("accuracy=exact&kernel=cpu-none", 400, "bad-option"),
        ("kernel=cpu-none", 422, "unknown-kernel"),
        ("result_dtype=int64", 422, "bad-value"),
        ("device=cuda", 503, "no-device"),
        ("layout=interleaved;block=1048577", 413, "too-large"),
        ("layout=interleaved;block=4&shape_a=2,4&shape_b=2,4", 400, "bad-length"),
    ],
)
def test_what_a_stream_is_refused_for_is_known_before_its_body(daemon, query, status, name):
    with daemon.wire() as wire:
        request = post("/v1/dot?dtype=f4&" + query, b"", RAW, "Expect: 100-continue")
        wire.send(request.replace(b"Content-Length: 0", b"Content-Length: 8388608"))
        wire.answer().problem(status, name)


def test_the_limit_of_a_block_is_told(daemon):
    problem = daemon.raw(bytes(16), "dtype=f8&layout=interleaved;block=131073").problem(
        413, "too-large"
    )
    assert (problem["limit"], problem["pointer"]) == (1 << 20, "/layout")
    assert daemon.get("/v1/limits").ok()["fixed"]["block_bytes"] == 1 << 20


@pytest.mark.parametrize("size", [1 << 20 | 4, 1 << 20 | 3, 12])
def test_lengths_that_do_not_fit_are_400(daemon, size):
    query = "dtype=f4&layout=interleaved;block=1000"
    daemon.raw(bytes(size), query).problem(400, "bad-length")
    daemon.raw(chunks(bytes(size)), query, CHUNKED, encode_chunked=True).problem(400, "bad-length")


def test_a_connection_goes_on_after_a_stream(road):
    daemon, query = road
    connection = daemon.connect()
    body = np.ones(1 << 19, "<f4").tobytes()
    for _ in range(5):
        headers = {"Content-Type": "application/octet-stream"}
        answer = ask(connection, "POST", "/v1/dot?dtype=f4" + query, body, headers)
        assert answer.ok()["result"] == float(1 << 18)
    connection.close()


@pytest.mark.every_build
def test_many_streams_at_once_get_their_own_sums(road):
    daemon, query = road
    wrong = []

    def client(number):
        body = np.full(1 << 20, number, "<f4").tobytes()
        for _ in range(3):
            answer = daemon.raw(body, "dtype=f4" + query)
            if answer.status != 200 or answer.json()["result"] != number * number * (1 << 19):
                wrong.append((number, answer.body[:200]))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    daemon.wait_status(lambda status: status["memory"]["used_bytes"] == 0)


@pytest.mark.every_build
def test_a_device_that_is_behind_holds_the_body_back(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("hang")
    answers, body = [], np.ones(1 << 24, "<f4").tobytes()
    query = "dtype=f4&layout=interleaved;block=4096&device=cuda"
    sender = threading.Thread(target=lambda: answers.append(daemon.raw(body, query)))
    sender.start()
    poll(daemon.fault.is_hanging, "the device does not hang")
    status = daemon.wait_status(lambda status: queued(status) == 1)
    assert status["memory"]["used_bytes"] <= 24 << 20  # of 64
    assert answers == []
    daemon.fault.say("")
    sender.join()
    assert (answers[0].ok()["result"], answers[0].ok()["device"]) == (float(1 << 23), "cuda:0")


def test_a_device_that_fails_in_the_middle_of_a_body_is_stood_in_for(start_faulty):
    daemon = start_faulty()
    daemon.fault.say("hang")
    answers, body = [], np.ones(1 << 23, "<f4").tobytes()
    sender = threading.Thread(
        target=lambda: answers.append(daemon.raw(body, "dtype=f4&device=cuda"))
    )
    sender.start()
    poll(daemon.fault.is_hanging, "the device does not hang")
    daemon.fault.say("memory")
    sender.join()
    assert answers[0].ok()["result"] == float(1 << 22)


def worker_kib(daemon, field):
    """Of the process that serves: the daemon's child, where it has one."""
    pid = (daemon.workers() or [daemon.process.pid])[0]
    lines = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(lines.split(f"{field}:")[1].split()[0])


def send_chunked(wire, target, rounds, last):
    """An interleaved body of whole rounds, and a last one, of which only one is ever in memory."""
    head = post(target, b"", RAW).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    wire.send(head)
    for data, times in rounds, (last, 1):
        chunk = f"{len(data):x}\r\n".encode() + data + b"\r\n"
        for _ in range(times):
            wire.send(chunk)
    wire.send(b"0\r\n\r\n")


def dot_of_a_generator(daemon, n, block=1 << 20):
    """(answer, what it must be) of n products of int8 that a client makes up as it goes."""
    a = (np.arange(block) * 37 % 251 - 125).astype("i1")
    b = (np.arange(block) * 91 % 241 - 120).astype("i1")
    products = a.astype("i8") * b
    rest = n % block
    with daemon.wire() as wire:
        last = a[:rest].tobytes() + b[:rest].tobytes()
        rounds = a.tobytes() + b.tobytes(), n // block
        send_chunked(wire, f"/v1/dot?dtype=int8&layout=interleaved;block={block}", rounds, last)
        answer = wire.answer().ok()
    return answer, n // block * int(products.sum()) + int(products[:rest].sum())


def test_memory_stays_flat_however_long_the_vectors(start_daemon):
    daemon = start_daemon(cuda="off")
    dot_of_a_generator(daemon, (2 << 20) + 5)
    before = worker_kib(daemon, "VmHWM")
    answer, expected = dot_of_a_generator(daemon, (64 << 20) + 5)
    assert (answer["result"], answer["n"]) == (expected, (64 << 20) + 5)
    assert worker_kib(daemon, "VmHWM") - before < 16 << 10


@pytest.mark.release
def test_vectors_of_more_than_32_bits_of_elements_are_exact(start_daemon):
    daemon = start_daemon(cuda="off", max_body_bytes=16 << 30, body_timeout_ms=3_600_000)
    dot_of_a_generator(daemon, (2 << 20) + 5)
    before = worker_kib(daemon, "VmHWM")
    n = 2**32 + 7
    answer, expected = dot_of_a_generator(daemon, n)
    assert (answer["result"], answer["n"]) == (expected, n)
    assert worker_kib(daemon, "VmHWM") - before < 16 << 10


def test_one_operand_is_all_that_a_concatenated_body_takes(start_daemon):
    """A budget that holds half of the body, and no more."""
    daemon = start_daemon(cuda="off", memory_budget_bytes=9 << 20)
    body = np.ones(1 << 22, "<f4").tobytes()
    assert daemon.raw(body, "dtype=f4").ok()["result"] == float(1 << 21)
    held = daemon.raw(chunks(body), "dtype=f4", CHUNKED, encode_chunked=True)
    assert held.status in (413, 503)
