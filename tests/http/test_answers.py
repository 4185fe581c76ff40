"""What an answer looks like: fields and their order, timing, headers, representations."""

import decimal
import json
import re
import struct
import urllib.parse

import pytest

from client import parse_json

FIELDS = [
    "result",
    "bits",
    "shape",
    "n",
    "dtype",
    "result_dtype",
    "accuracy",
    "error_bound",
    "flags",
    "kernel",
    "device",
    "device_name",
    "batch_size",
    "timing_us",
]
STAGES = ["receive", "decode", "queue", "copy_in", "compute", "copy_out", "total"]
REQUEST = {"a": [1, 2, 3], "b": [4, 5, 6]}
RAW = {"Accept": "application/octet-stream"}


def test_fields_come_in_the_order_of_the_contract(daemon):
    assert list(daemon.dot(REQUEST).ok()) == FIELDS
    assert list(daemon.dot(REQUEST | {"id": "r"}).ok()) == FIELDS + ["id"]


def test_fields_have_their_types(daemon):
    answer = daemon.dot(REQUEST).ok()
    assert (answer["dtype"], answer["accuracy"], answer["device"]) == ("float64", "exact", "cpu")
    assert answer["kernel"] == "exact" and answer["device_name"]
    assert answer["batch_size"] == 1
    assert (answer["error_bound"], answer["flags"]) == (0.0, [])


@pytest.mark.parametrize("inline_terms", [0, 65536])
def test_parts_of_the_timing_add_up_to_its_total(start_daemon, inline_terms):
    daemon = start_daemon(inline_terms=inline_terms)
    for _ in range(20):
        text = daemon.dot(REQUEST).body.decode()
        timing = json.loads(text, parse_float=decimal.Decimal)["timing_us"]
        assert list(timing) == STAGES
        assert all(value >= 0 for value in timing.values()), timing
        assert sum(timing[stage] for stage in STAGES[:-1]) == timing["total"], timing
        assert timing["total"] > 0


def test_server_timing_carries_the_same_stages(daemon):
    answer = daemon.dot(REQUEST)
    header = answer.headers["Server-Timing"]
    stages = dict(re.findall(r"([a-z_]+);dur=([0-9.]+)", header))
    assert list(stages) == STAGES, header
    for stage, value in answer.ok()["timing_us"].items():
        assert abs(float(stages[stage]) - value / 1000) <= 0.001, (stage, header)


def test_request_id_is_echoed(daemon):
    answer = daemon.dot(REQUEST, headers={"X-Request-Id": "abc-123"})
    assert answer.headers["X-Request-Id"] == "abc-123"
    problem = daemon.dot("nonsense", headers={"X-Request-Id": "abc-124"})
    assert problem.headers["X-Request-Id"] == "abc-124"


def test_request_id_is_made_when_none_came(daemon):
    made = {daemon.dot(REQUEST).headers["X-Request-Id"] for _ in range(5)}
    assert len(made) == 5 and all(made), made


def test_answers_have_a_length_and_a_date(daemon):
    answer = daemon.dot(REQUEST)
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert answer.headers["Date"]


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "*/*",
        "application/json",
        "application/*",
        "text/html, */*;q=0.1",
        "application/json;q=0.9, application/octet-stream;q=0.1",
    ],
)
def test_json_is_what_most_clients_get(daemon, accept):
    headers = {"Accept": accept} if accept else {}
    assert daemon.dot(REQUEST, headers=headers).ok()["result"] == 32.0


@pytest.mark.parametrize("result_dtype, code", [("float64", "<d"), ("float32", "<f")])
def test_raw_results_come_with_the_rest_in_headers(daemon, result_dtype, code):
    answer = daemon.dot(
        REQUEST | {"result_dtype": result_dtype}, headers={"Accept": "application/octet-stream"}
    )
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert struct.unpack(code, answer.body) == (32.0,)
    assert answer.headers["Dotd-Device"] == "cpu"
    assert answer.headers["Dotd-Kernel"] == "exact"
    assert "Dotd-Shape" not in answer.headers  # a scalar's shape is empty
    assert "Dotd-Flags" not in answer.headers  # there are none: the result is exact
    assert answer.headers["Dotd-Dtype"] == result_dtype
    for name in ("Dotd-Id", "Dotd-Sum-Abs", "Dotd-Condition"):
        assert name not in answer.headers  # not asked for
    assert float(answer.headers["Dotd-Error-Bound"]) == 0
    assert "total;dur=" in answer.headers["Server-Timing"]


@pytest.mark.parametrize("text", ["r-17", "a b", "a\r\nX-Evil: 1", "100%", "\u00e4\u20ac", "\x7f"])
def test_raw_results_echo_the_id_without_breaking_the_head(daemon, text):
    answer = daemon.dot(REQUEST | {"id": text}, headers=RAW)
    assert urllib.parse.unquote(answer.headers["Dotd-Id"], errors="strict") == text
    assert re.fullmatch("[!-~]+", answer.headers["Dotd-Id"])
    assert "X-Evil" not in answer.headers


def test_raw_results_carry_the_diagnostics_of_a_scalar(daemon):
    request = {"a": [3, 1], "b": [2, -5], "diagnostics": True}
    answer = daemon.dot(request, headers=RAW)
    assert struct.unpack("<d", answer.body) == (1.0,)
    assert (answer.headers["Dotd-Sum-Abs"], answer.headers["Dotd-Condition"]) == ("11.0", "11.0")
    headers = daemon.dot(request | {"b": [2, -6]}, headers=RAW).headers
    assert (headers["Dotd-Sum-Abs"], headers["Dotd-Condition"]) == ("12.0", "Infinity")


@pytest.mark.parametrize(
    "more", [{"a": [[1], [2]]}, {"a": [[1, 0]], "b": [[1, 0]], "dtype": "c64"}]
)
def test_raw_results_do_not_carry_more_diagnostics_than_a_scalars(daemon, more):
    request = {"b": [1], "diagnostics": True} | more
    problem = daemon.dot(request, headers=RAW).problem(400, "bad-option")
    assert "JSON" in problem["detail"] and problem["pointer"] == "/diagnostics"
    assert "sum_abs" in daemon.dot(request).ok()


def test_raw_results_of_a_matrix_are_in_c_order(daemon):
    request = {"a": [[[1, 0]], [[0, 1]]], "b": [[2, 3], [4, 5], [6, 7]]}
    answer = daemon.dot(request, headers={"Accept": "application/octet-stream"})
    assert struct.unpack("<6d", answer.body) == (2, 4, 6, 3, 5, 7)
    assert answer.headers["Dotd-Shape"] == "2,3"


def test_the_preferred_representation_wins(daemon):
    accept = "application/json;q=0.1, application/octet-stream"
    answer = daemon.dot(REQUEST, headers={"Accept": accept})
    assert answer.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize("accept", ["text/html", "image/*", "application/json;q=0"])
def test_what_cannot_be_sent_is_406(daemon, accept):
    problem = daemon.dot(REQUEST, headers={"Accept": accept}).problem(406, "not-acceptable")
    assert "application/json" in problem["detail"]


def test_bits_are_those_of_the_result(daemon):
    for value in (0.1, -1.5, 1e300, 5e-324, 123456789.0):
        answer = daemon.dot({"a": [value], "b": [1]}).ok()
        assert (
            answer["bits"]
            == f"0x{struct.unpack('<Q', struct.pack('<d', answer['result']))[0]:016x}"
        )
        assert answer["result"] == value


def test_numbers_print_in_their_shortest_form(daemon):
    for value in (0.1, 7.6, 1e22, 1e23, 5e-324, 1.7976931348623157e308, 1e16, 123456.0, 1e-5):
        body = daemon.dot({"a": [value], "b": [1]}).body.decode()
        assert f'"result": {value!r},' in body or f'"result":{value!r},' in body, body


def test_answers_to_many_pairs_are_strict_json(daemon):
    pairs = [{"a": [float(i)], "b": [0.5]} for i in range(1000)]
    answer = daemon.dot({"pairs": pairs})
    assert parse_json(answer.body.decode())["result"] == [i / 2 for i in range(1000)]
