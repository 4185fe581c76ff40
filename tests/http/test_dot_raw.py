"""POST /v1/dot with raw elements: lengths, shapes, byte order, pieces; and GET."""

import numpy as np
import pytest


@pytest.mark.every_build
@pytest.mark.parametrize("dtype, code", [("float32", "<f4"), ("float64", "<f8")])
def test_two_halves_are_two_vectors(daemon, dtype, code):
    body = np.array([1, 2, 3, 4, 5, 6], code).tobytes()
    answer = daemon.raw(body, f"dtype={dtype}").ok()
    assert (answer["result"], answer["n"], answer["dtype"]) == (32.0, 3, dtype)


@pytest.mark.parametrize("dtype, code", [("%3Ef4", ">f4"), ("%3Ef8", ">f8"), ("%3Cf4", "<f4")])
def test_byte_order_is_honoured(daemon, dtype, code):
    body = np.array([1, 2, 3, 4.5, 5, 6], code).tobytes()
    assert daemon.raw(body, f"dtype={dtype}").ok()["result"] == 32.5


@pytest.mark.parametrize(
    "shape_a, shape_b, shape",
    [
        ((5,), (5,), ()),
        ((3, 5), (5,), (3,)),
        ((5,), (3, 5), (3,)),
        ((3, 5), (3, 5), (3,)),
        ((4, 1, 5), (3, 5), (4, 3)),
        ((2, 1, 3, 5), (2, 4, 1, 5), (2, 4, 3)),
        ((1, 5), (3, 5), (3,)),
        ((0, 5), (5,), (0,)),
        ((3, 0), (3, 0), (3,)),
    ],
)
def test_shapes_broadcast_as_in_numpy(daemon, shape_a, shape_b, shape):
    a = np.arange(np.prod(shape_a), dtype="<f8").reshape(shape_a) - 7
    b = np.arange(np.prod(shape_b), dtype="<f8").reshape(shape_b) + 3
    text_a, text_b = (",".join(map(str, s)) for s in (shape_a, shape_b))
    query = f"dtype=float64&shape_a={text_a}&shape_b={text_b}"
    answer = daemon.raw(a.tobytes() + b.tobytes(), query).ok()
    assert answer["shape"] == list(shape)
    assert answer["result"] == (a * b).sum(-1).tolist()


def test_one_shape_leaves_the_rest_to_the_other(daemon):
    body = np.array([1, 2, 3, 4, 10, 1], "<f4").tobytes()
    assert daemon.raw(body, "dtype=f32&shape_a=2,2").ok()["result"] == [12.0, 34.0]


def test_no_elements_are_two_empty_vectors(daemon):
    answer = daemon.raw(b"", "dtype=float32").ok()
    assert (answer["result"], answer["n"]) == (0.0, 0)


@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_chunks_may_cut_elements(daemon, size):
    body = np.arange(2048, dtype="<f4").tobytes()
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    answer = daemon.raw(
        iter(pieces), "dtype=float32", {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    expected = float(np.dot(np.arange(1024, dtype="f8"), np.arange(1024, 2048, dtype="f8")))
    assert answer.ok()["result"] == expected


def test_chunks_and_shapes_go_together(daemon):
    body = np.arange(12, dtype="<f8").tobytes()
    headers = {"Transfer-Encoding": "chunked"}
    query = "dtype=float64&shape_a=2,4&shape_b=4"
    answer = daemon.raw(iter([body[:50], body[50:]]), query, headers, encode_chunked=True)
    assert answer.ok()["result"] == [62.0, 214.0]


def test_a_large_body_arrives_whole(daemon):
    values = np.tile(np.array([1, -1, 2, 0.5], "<f4"), 1 << 20)
    answer = daemon.raw(values.tobytes(), "dtype=float32").ok()
    assert (answer["result"], answer["n"]) == (6.25 * (1 << 19), 1 << 21)


@pytest.mark.parametrize(
    "content_type", ["Application/Octet-Stream", "application/octet-stream; x=y"]
)
def test_media_types_match_in_any_case_and_with_parameters(daemon, content_type):
    body = np.array([1, 2], "<f4").tobytes()
    assert daemon.raw(body, "dtype=f32", {"Content-Type": content_type}).ok()["result"] == 2.0


def test_bytes_without_dtype_are_refused(daemon):
    assert "dtype" in daemon.raw(bytes(8), "").problem(400, "bad-option")["detail"]


@pytest.mark.parametrize(
    "size, query",
    [
        (7, "dtype=float32"),
        (4, "dtype=float32"),
        (12, "dtype=float32"),
        (16, "dtype=float64&shape_a=2&shape_b=2"),
        (40, "dtype=float64&shape_a=2&shape_b=2"),
    ],
)
def test_a_length_that_does_not_fit_is_400(daemon, size, query):
    daemon.raw(bytes(size), query).problem(400, "bad-length")
    answer = daemon.raw(
        iter([bytes(size)]), query, {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    answer.problem(400, "bad-length")


def test_a_stripped_line_end_is_explained(daemon):
    assert (
        "--data-binary"
        in daemon.raw(bytes(7), "dtype=float32").problem(400, "bad-length")["detail"]
    )
    query, headers = "dtype=float32&shape_a=2&shape_b=2", {"Transfer-Encoding": "chunked"}
    for size, is_stripped in ((15, True), (12, False), (20, False)):
        fixed = daemon.raw(bytes(size), query)
        chunked = daemon.raw(iter([bytes(size)]), query, headers, encode_chunked=True)
        problem = fixed.problem(400, "bad-length")
        assert ("--data-binary" in problem["detail"]) == is_stripped, problem
        problem = chunked.problem(400, "bad-length")
        assert ("--data-binary" in problem["detail"]) == is_stripped, problem
        assert "announced" not in problem["detail"], problem


def test_shapes_that_do_not_match_are_422(daemon):
    for query in ("shape_a=2&shape_b=3", "shape_a=3", "shape_b=3"):
        daemon.raw(bytes(20), "dtype=float32&" + query).problem(422, "length-mismatch")


@pytest.mark.parametrize(
    "shape", ["x", "-1", "1,,2", "2,", "1,1,1,1,1,1,1,1,1", "99999999999999999999"]
)
def test_shapes_that_are_none_are_422(daemon, shape):
    daemon.raw(bytes(16), f"dtype=float32&shape_a={shape}&shape_b=2").problem(422, "bad-value")


def test_a_shape_beyond_counting_is_refused(daemon):
    answer = daemon.raw(bytes(16), "dtype=float32&shape_a=4294967296,4294967296&shape_b=4294967296")
    assert answer.status in (400, 413, 422), answer.status


@pytest.mark.parametrize(
    "query, result",
    [
        ("a=1,2,3&b=4,5,6", 32.0),
        ("b=4&a=0.5", 2.0),
        ("a=1e%2B2&b=1", 100.0),
        ("a=1e+2&b=1", 100.0),
        ("a=1%2C2&b=3%2c4", 11.0),
        ("a=-0.5&b=-2&dtype=float32", 1.0),
    ],
)
def test_get_takes_operands_from_the_query(daemon, query, result):
    assert daemon.get("/v1/dot?" + query).ok()["result"] == result


def test_get_rounds_once_whatever_the_order(daemon):
    for query in ("a=1.00000005960464478&b=1&dtype=f32", "dtype=f32&a=1.00000005960464478&b=1"):
        assert daemon.get("/v1/dot?" + query).ok()["result"] == 1.0000001192092896


def test_get_names_the_element_that_is_wrong(daemon):
    problem = daemon.get("/v1/dot?a=1,2,x&b=1,2,3").problem(422, "bad-value")
    assert problem["pointer"] == "/a/2"


def test_get_without_an_operand_is_refused(daemon):
    for query in ("?a=1", "?b=1", ""):
        daemon.get("/v1/dot" + query).problem(422, "bad-value")


def test_get_refuses_lengths_that_differ(daemon):
    daemon.get("/v1/dot?a=1,2&b=1").problem(422, "length-mismatch")


def test_get_refuses_unknown_and_repeated_parameters(daemon):
    detail = daemon.get("/v1/dot?a=1&b=1&c=1").problem(400, "bad-option")["detail"]
    assert "known are a, b, dtype," in detail and "shape" not in detail
    daemon.get("/v1/dot?a=1&a=1&b=1").problem(400, "bad-option")
