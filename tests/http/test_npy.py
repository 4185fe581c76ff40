"""application/x-npy: arrays as numpy.save() writes them, and answers that numpy.load() reads."""

import io

import numpy as np
import pytest

from cases import numbers
from client import post
from test_streams import CHUNKED, CODES, chunks, operands

NPY = {"Content-Type": "application/x-npy"}


def saved(*arrays, version=None):
    """The arrays' files, one after the other."""
    file = io.BytesIO()
    for array in arrays:
        np.lib.format.write_array(file, np.asanyarray(array), version=version)
    return file.getvalue()


def ask_npy(daemon, body, query="", headers={}, **keywords):
    return daemon.call("POST", "/v1/dot" + query, body, NPY | headers, **keywords)


def loaded(answer):
    assert answer.status == 200, answer.body[:400]
    assert answer.headers["Content-Type"] == "application/x-npy"
    return np.load(io.BytesIO(answer.body), allow_pickle=False)


@pytest.mark.every_build
@pytest.mark.parametrize("dtype, code", numbers(*CODES.items()))
def test_arrays_of_every_type_and_order_give_the_bits_of_raw_elements(daemon, dtype, code):
    a, b = operands(code, 1000)
    expected = daemon.raw(a.tobytes() + b.tobytes(), f"dtype={dtype}").ok()
    for a_order, b_order in ("<<", ">>", "<>", "><"):
        for version in ((1, 0), (2, 0), (3, 0)):
            x, y = a.astype(a_order + code), b.astype(b_order + code)
            answer = ask_npy(daemon, saved(x, y, version=version)).ok()
            assert (answer["bits"], answer["dtype"]) == (expected["bits"], dtype)


@pytest.mark.parametrize(
    "shape_a, shape_b", [((3, 5), (5,)), ((4, 1, 5), (3, 5)), ((0, 5), (5,)), ((3, 0), (3, 0))]
)
def test_arrays_tell_their_shapes(daemon, shape_a, shape_b):
    a = np.arange(np.prod(shape_a), dtype="f8").reshape(shape_a) - 7
    b = np.arange(np.prod(shape_b), dtype="f8").reshape(shape_b) + 3
    expected = (a * b).sum(-1)
    answer = ask_npy(daemon, saved(a, b)).ok()
    assert (answer["shape"], answer["result"]) == (list(expected.shape), expected.tolist())
    result = loaded(ask_npy(daemon, saved(a, b), headers={"Accept": "application/x-npy"}))
    assert result.dtype == "<f8" and result.shape == expected.shape
    assert np.array_equal(result, expected)


@pytest.mark.parametrize(
    "query, code",
    [
        ("", "<f8"),
        ("?result_dtype=float32", "<f4"),
        ("?result_dtype=float16", "<f2"),
        ("?dtype=int8", "<i8"),
        ("?dtype=complex64", "<c16"),
        ("?dtype=complex64&result_dtype=complex64", "<c8"),
        ("?result_dtype=bfloat16", "|V2"),
    ],
)
def test_answers_are_arrays_whatever_the_question_was(daemon, query, code):
    pairs = [[1, 2], [3, 4]] if "complex" in query else [1, 2]
    request = {"a": [pairs, pairs], "b": pairs}
    result = loaded(daemon.dot(request, query, {"Accept": "application/x-npy"}))
    assert (result.dtype.str, result.shape) == (code, (2,))
    bits = [int(text, 16) for text in np.ravel(daemon.dot(request, query).ok()["bits"])]
    part = {"c16": 8, "c8": 4}.get(code[1:], result.dtype.itemsize)
    assert np.frombuffer(result.tobytes(), f"<u{part}").tolist() == bits


def test_a_single_number_is_an_array_without_dimensions(daemon):
    answer = daemon.dot({"a": [1, 2], "b": [3, 4]}, headers={"Accept": "application/x-npy"})
    result = loaded(answer)
    assert (result.shape, float(result)) == ((), 11.0)
    assert (answer.headers["Dotd-Device"], answer.headers["Dotd-Error-Bound"]) == ("cpu", "0.0")
    assert "Dotd-Shape" not in answer.headers


def test_an_integer_beyond_64_bits_is_no_array(daemon):
    request = {"a": [2**62], "b": [4], "dtype": "int64"}
    answer = daemon.dot(request, headers={"Accept": "application/x-npy"})
    assert answer.problem(422, "bad-value")["pointer"] == "/result_dtype"


@pytest.mark.parametrize("size", [1, 7, 64, 5000])
def test_arrays_may_be_cut_anywhere(daemon, size):
    a, b = operands("f4", 300)
    answer = ask_npy(daemon, chunks(saved(a, b), size), "", CHUNKED, encode_chunked=True)
    assert answer.ok()["bits"] == ask_npy(daemon, saved(a, b)).ok()["bits"]


def test_fortran_order_is_read_where_it_is_no_other(daemon):
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    problem = ask_npy(daemon, saved(a, [1.0, 1.0, 1.0])).problem(422, "unsupported")
    assert "ascontiguousarray" in problem["detail"] and problem["pointer"] == "/a"
    vector = saved(np.arange(3.0)).replace(b"False", b"True ")
    assert ask_npy(daemon, vector + vector).ok()["result"] == 5.0


@pytest.mark.parametrize(
    "array, status, name, word",
    [
        (np.array([{}], object), 422, "unsupported", "objects"),
        (np.zeros(2, [("x", "f4"), ("y", "i4")]), 422, "unsupported", "('x', '<f4')"),
        (np.zeros(2, "u2"), 422, "unknown-dtype", "<u2"),
        (np.zeros(2, "U3"), 422, "unknown-dtype", "<U3"),
        (np.zeros(2, bool), 422, "unknown-dtype", "|b1"),
        (np.zeros((1,) * 9), 422, "bad-value", "8"),
        (np.zeros(()), 422, "length-mismatch", "scalar"),
    ],
)
def test_arrays_that_are_not_computed_are_refused_by_name(daemon, array, status, name, word):
    problem = ask_npy(daemon, saved(array, np.zeros(2))).problem(status, name)
    assert word in problem["detail"], problem
    assert problem["pointer"] == ("/b" if name == "length-mismatch" else "/a")


@pytest.mark.parametrize(
    "change, status, name",
    [
        (lambda body: body[:-1], 400, "bad-length"),
        (lambda body: body[: len(body) // 2], 400, "bad-length"),
        (lambda body: body + b"\n", 400, "bad-length"),
        (lambda body: b"", 400, "bad-length"),
        (lambda body: b"PK\3\4" + body, 400, "bad-syntax"),
        (lambda body: body.replace(b"'descr'", b"'descx'"), 400, "bad-syntax"),
    ],
)
def test_files_that_are_none_are_400(daemon, change, status, name):
    body = change(saved(np.arange(5.0), np.arange(5.0)))
    ask_npy(daemon, body).problem(status, name)
    answer = ask_npy(daemon, iter([body]), "", CHUNKED, encode_chunked=True)
    answer.problem(status, name)


def test_types_that_disagree_are_refused(daemon):
    ask_npy(daemon, saved(np.zeros(2, "f4"), np.zeros(2))).problem(422, "bad-value")
    body = saved(np.zeros(2), np.zeros(2))
    assert ask_npy(daemon, body, "?dtype=float32").problem(400, "bad-option")["pointer"] == "/a"
    assert ask_npy(daemon, body, "?dtype=float64").ok()["dtype"] == "float64"
    ask_npy(daemon, body, "?shape_a=2").problem(400, "bad-option")


def test_bfloat16_needs_to_be_said(daemon):
    bits = np.array([0x3F80, 0x4000], "<u2").view("V2")  # 1 and 2
    assert ask_npy(daemon, saved(bits, bits), "?dtype=bfloat16").ok()["result"] == 5.0
    problem = ask_npy(daemon, saved(bits, bits)).problem(422, "unknown-dtype")
    assert "dtype=bfloat16" in problem["detail"]


@pytest.mark.every_build
@pytest.mark.parametrize("order", numbers(*"<>"))
def test_one_row_is_reduced_as_it_arrives(start_daemon, order):
    """A budget that holds one operand, and no more."""
    daemon = start_daemon(cuda="off", memory_budget_bytes=9 << 20)
    a, b = operands("f4", 2 << 20)
    expected = daemon.raw(a.tobytes() + b.tobytes(), "dtype=f4").ok()
    body = saved(a.astype(order + "f4"), b.astype(order + "f4"))
    assert ask_npy(daemon, body).ok()["bits"] == expected["bits"]
    answer = ask_npy(daemon, chunks(body), "", CHUNKED, encode_chunked=True)
    assert answer.ok()["bits"] == expected["bits"]
    two_rows = saved(a.reshape(2, -1), b.reshape(2, -1))
    assert ask_npy(daemon, two_rows).status in (413, 503)


def test_streams_reach_the_device_that_was_asked_for(start_faulty):
    daemon = start_faulty()
    a, b = operands("f8", 1 << 20)
    expected = ask_npy(daemon, saved(a, b)).ok()
    answer = ask_npy(daemon, saved(a, b), "?device=cuda").ok()
    assert (answer["device"], answer["bits"]) == ("cuda:0", expected["bits"])


@pytest.mark.parametrize(
    "query, status, name, pointer",
    [
        ("?kernel=nonesuch", 422, "unknown-kernel", "/kernel"),
        ("?result_dtype=int64", 422, "bad-value", "/result_dtype"),
        ("?device=cuda", 503, "no-device", "/device"),
    ],
)
def test_what_a_stream_cannot_do_is_refused_in_its_middle(daemon, query, status, name, pointer):
    a, b = operands("f4", 1 << 20)
    head = saved(a, b)[: (4 << 20) + 1024]
    with daemon.wire() as wire:
        request = post("/v1/dot" + query, b"", "Content-Type: application/x-npy")
        wire.send(request.replace(b"Content-Length: 0", b"Content-Length: 99999999") + head)
        assert wire.answer().problem(status, name)["pointer"] == pointer


def test_rungs_of_the_ladder_take_arrays_too(daemon):
    a = np.arange(40_000, dtype="f4") % 8
    answer = ask_npy(daemon, saved(a, a), "?kernel=block-atomic").ok()
    assert (answer["kernel"], answer["result"]) == ("block-atomic", float((a * a).sum()))
