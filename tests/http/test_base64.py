"""Operands of base64 in JSON: every type and alphabet, beside numbers, in pairs, in pieces."""

import base64
import json

import numpy as np
import pytest

from cases import numbers
from test_streams import CHUNKED, CODES, chunks, operands


def packed(array, **more):
    return {"base64": base64.b64encode(array.tobytes()).decode(), **more}


@pytest.mark.every_build
@pytest.mark.parametrize("dtype, code", numbers(*CODES.items()))
def test_base64_gives_the_bits_of_raw_elements(daemon, dtype, code):
    for n in (0, 1, 2, 1001):
        a, b = operands(code, n)
        expected = daemon.raw(a.tobytes() + b.tobytes(), f"dtype={dtype}").ok()
        big = packed(b.astype(">" + code), dtype=f">{code}")
        for request in (
            {"a": packed(a, dtype=dtype), "b": packed(b, dtype="<" + code)},
            {"a": packed(a), "b": packed(b), "dtype": dtype},
            {"a": packed(a), "b": big},
        ):
            answer = daemon.dot(request).ok()
            assert (answer["bits"], answer["dtype"]) == (expected["bits"], dtype)


def test_both_alphabets_and_what_writers_of_json_make_of_them_are_read(daemon):
    a = np.array([-1, -5, -2, 62], "i1").repeat(3)  # whose text has both special digits
    text = base64.b64encode(a.tobytes()).decode()
    assert "+" in text and "/" in text
    url = base64.urlsafe_b64encode(a.tobytes()).decode()
    escaped = text.replace("/", "\\/").replace("+", "\\u002B")
    for form in (text, url, url.rstrip("="), escaped):
        body = f'{{"a":{{"base64":"{form}","dtype":"i1"}},"b":{[1] * 12}}}'
        assert daemon.dot(body).ok()["result"] == int(a.sum())


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_texts_may_be_cut_anywhere(daemon, size):
    a, b = operands("f8", 500 if size == 1 else 5000)
    request = {"a": packed(a, dtype="f8"), "b": b.tolist(), "id": "x"}
    headers = {"Content-Type": "application/json"} | CHUNKED
    body = chunks(json.dumps(request).encode(), size)
    answer = daemon.call("POST", "/v1/dot", body, headers, encode_chunked=True).ok()
    assert answer["bits"] == daemon.raw(a.tobytes() + b.tobytes(), "dtype=f8").ok()["bits"]


def test_shapes_broadcast(daemon):
    a, b = np.arange(12, dtype="f4").reshape(4, 3), np.arange(3, dtype="f4")
    request = {"a": packed(a, dtype="f4", shape=[4, 3]), "b": packed(b)}
    answer = daemon.dot(request).ok()
    assert (answer["shape"], answer["result"]) == ([4], (a * b).sum(-1).tolist())


def test_pairs_may_hold_base64(daemon):
    a = np.arange(5, dtype="f4")
    pairs = [{"a": packed(a, dtype="f4"), "b": packed(a)}, {"a": [1.5], "b": [2]}]
    assert daemon.dot({"pairs": pairs}).ok()["result"] == [30.0, 3.0]


@pytest.mark.parametrize(
    "operand, status, name, pointer",
    [
        ({"base64": "AAAA"}, 400, "bad-option", "/a/dtype"),
        ({"base64": "AA*A", "dtype": "i1"}, 422, "bad-value", "/a/base64"),
        ({"base64": "A", "dtype": "i1"}, 422, "bad-value", "/a/base64"),
        ({"base64": "AB", "dtype": "i1"}, 422, "bad-value", "/a/base64"),
        ({"base64": "AAAA", "dtype": "f4"}, 400, "bad-length", "/a/base64"),
        ({"base64": "AAAA", "dtype": "i1", "shape": [4]}, 400, "bad-length", "/a/base64"),
        ({"base64": "AAAA", "dtype": "i1", "shape": "3"}, 422, "bad-value", "/a/shape"),
        ({"base64": "AAAA", "dtype": "i3"}, 422, "unknown-dtype", "/a/dtype"),
        ({"base64": 5, "dtype": "i1"}, 422, "bad-value", "/a/base64"),
        ({"base64": "AAAA", "dtype": "i1", "x": 1}, 400, "bad-option", "/a/x"),
    ],
)
def test_objects_that_are_wrong_are_refused_at_their_place(daemon, operand, status, name, pointer):
    problem = daemon.dot({"a": operand, "b": [1, 2, 3]}).problem(status, name)
    assert problem["pointer"] == pointer


def test_a_type_that_contradicts_the_request_is_refused(daemon):
    request = {"a": packed(np.zeros(2, "f4"), dtype="f4"), "b": [1, 2], "dtype": "f8"}
    assert daemon.dot(request).problem(400, "bad-option")["pointer"] == "/a/dtype"
