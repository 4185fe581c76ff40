"""Raw bodies of many pairs (layout=pairs): the answers of the same pairs in JSON."""

import gzip

import numpy as np
import pytest

CHUNKED = {"Transfer-Encoding": "chunked"}
LENGTHS = [5, 0, 1, 1000, 37, 2, 0, 260]
CODES = {
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "int8": "i1",
    "int64": "i8",
    "complex64": "c8",
}


def pairs_of(code, lengths=LENGTHS):
    """Vectors of numbers that every type holds exactly, also in JSON."""
    generator = np.random.default_rng(len(lengths))

    def vector(n):
        numbers = generator.integers(-100, 100, (2, n)).astype("f8")
        return (numbers[0] + 1j * numbers[1] if code[0] == "c" else numbers[0]).astype(code)

    return [(vector(n), vector(n)) for n in lengths]


def body_of(pairs, order="<"):
    numbers = np.array([len(pairs), *(len(a) for a, _ in pairs)], order + "u8").tobytes()
    return numbers + b"".join(
        x.astype(x.dtype.newbyteorder(order)).tobytes() for p in pairs for x in p
    )


def listed(vector):
    return (
        [[x.real, x.imag] for x in vector.tolist()] if vector.dtype.kind == "c" else vector.tolist()
    )


def expected(daemon, pairs, dtype):
    rows = [{"a": listed(a), "b": listed(b)} for a, b in pairs]
    return daemon.dot({"pairs": rows, "dtype": dtype}).ok()


@pytest.mark.every_build
@pytest.mark.parametrize("dtype", CODES)
def test_pairs_have_the_answers_that_they_have_in_json(daemon, dtype):
    pairs = pairs_of(CODES[dtype])
    wanted = expected(daemon, pairs, dtype)
    body, query = body_of(pairs), f"dtype={dtype}&layout=pairs"
    pieces = iter([body[i : i + 333] for i in range(0, len(body), 333)])
    answers = [
        daemon.raw(body, query),
        daemon.raw(pieces, query, CHUNKED, encode_chunked=True),
        daemon.raw(gzip.compress(body), query, {"Content-Encoding": "gzip"}),
    ]
    if np.dtype(CODES[dtype]).itemsize > 1:
        answers.append(daemon.raw(body_of(pairs, ">"), query.replace(dtype, f">{CODES[dtype]}")))
    for answer in answers:
        got = answer.ok()
        assert got["n"] == LENGTHS
        for field in ("result", "bits", "shape", "error_bound", "flags"):
            assert got[field] == wanted[field]


def test_ten_thousand_pairs_are_one_request(daemon):
    lengths = np.random.default_rng(1).integers(0, 50, 10_000).tolist()
    pairs = [(np.full(n, i % 7, "f4"), np.ones(n, "f4")) for i, n in enumerate(lengths)]
    answer = daemon.raw(
        body_of(pairs), "dtype=f4&layout=pairs", {"Accept": "application/octet-stream"}
    )
    assert answer.status == 200
    assert np.frombuffer(answer.body, "f8").tolist() == [i % 7 * n for i, n in enumerate(lengths)]


def test_no_pairs_are_an_empty_list(daemon):
    assert daemon.raw(bytes(8), "dtype=f4&layout=pairs").ok()["result"] == []


@pytest.mark.parametrize(
    ("numbers", "elements", "query", "status", "name"),
    [
        ([2, 1], 0, "", 400, "bad-length"),
        ([2, 1, 1], 3, "", 400, "bad-length"),
        ([2, 1, 1], 5, "", 400, "bad-length"),
        ([65537], 0, "", 413, "too-large"),
        ([1, 1 << 60], 0, "", 413, "too-large"),
        ([1, 1], 2, "&shape_a=1", 400, "bad-option"),
    ],
)
def test_what_does_not_fit_is_refused(daemon, numbers, elements, query, status, name):
    body = np.array(numbers, "<u8").tobytes() + bytes(4 * elements)
    daemon.raw(body, "dtype=f4&layout=pairs" + query).problem(status, name)
