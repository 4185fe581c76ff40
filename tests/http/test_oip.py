"""The Open Inference Protocol on the wire: every mix of JSON and binary tensors, and what is refused."""

import itertools
import json
import random
import socket
import struct
import threading

import pytest

from cases import numbers
from client import ask, get, parse_json, poll, post
from exposition import Exposition

LENGTH = "Inference-Header-Content-Length"
CODES = {"FP32": "f", "FP64": "d", "FP16": "e", "INT8": "b"}
MODELS = {
    "dot": ("FP32", "FP64"),
    "dot_fp64": ("FP64", "FP64"),
    "dot_fp16": ("FP16", "FP64"),
    "dot_bf16": ("BF16", "FP64"),
    "dot_int8": ("INT8", "INT64"),
}


def packed(datatype, values):
    if datatype == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{CODES[datatype]}", *values)


def tensor(name, values, datatype="FP32", shape=None, binary=False, /, **changes):
    """An input, and the bytes that follow the JSON. A change to None takes a member away."""
    shape = [len(values)] if shape is None else shape
    described = {"name": name, "shape": shape, "datatype": datatype}
    blob = packed(datatype, values) if binary else b""
    if binary:
        described["parameters"] = {"binary_data_size": len(blob)}
    else:
        described["data"] = values
    described.update(changes)
    return {key: value for key, value in described.items() if value is not None}, blob


def call(daemon, inputs, path="/v2/models/dot/infer", headers={}, length=None, **members):
    """Inputs from tensor(); members of the request besides them. The JSON's length is told when bytes
    follow it, or as length says."""
    document = json.dumps({"inputs": [described for described, _ in inputs], **members}).encode()
    blobs = b"".join(blob for _, blob in inputs)
    if length is None and blobs:
        length = len(document)
    told = {} if length in (None, False) else {LENGTH: str(length)}
    return daemon.call("POST", path, document + blobs, told | headers)


def result(answer):
    """The values, shape and document of an answer of success, however its result travels."""
    assert answer.status == 200, f"{answer.status}: {answer.body[:400]!r}"
    size = int(answer.headers.get(LENGTH, len(answer.body)))
    document = parse_json(answer.body[:size].decode())
    (output,) = document["outputs"]
    assert output["name"] == "result"
    if "data" in output:
        assert answer.headers["Content-Type"] == "application/json" and LENGTH not in answer.headers
        assert "parameters" not in output and size == len(answer.body)
        return output["data"], output["shape"], document
    assert answer.headers["Content-Type"] == "application/octet-stream"
    blob = answer.body[size:]
    assert output["parameters"] == {"binary_data_size": len(blob)}
    code = {"FP64": "d", "INT64": "q"}[output["datatype"]]
    return list(struct.unpack(f"<{len(blob) // 8}{code}", blob)), output["shape"], document


def error(answer, status):
    """The message of a refusal, which has the protocol's own form."""
    assert answer.status == status, f"{answer.status}: {answer.body[:400]!r}"
    assert answer.headers["Content-Type"] == "application/json"
    document = answer.json()
    assert list(document) == ["error"] and document["error"]
    return document["error"]


A, B = [1.5, -2, 3], [4, 5, 0.5]
BINARY = "FP32", [3], True
PAIR = [tensor("a", A), tensor("b", B)]


@pytest.mark.every_build
@pytest.mark.parametrize("model", MODELS)
def test_every_mix_of_json_and_binary_tensors_gives_the_result(daemon, model):
    datatype, output = MODELS[model]
    a, b = ([1, -2, 3, 7, 0, 5], [4, 5, -6, 1, 2, 3])
    for binary_a, binary_b, binary_output, a_first in itertools.product([False, True], repeat=4):
        inputs = [
            tensor("a", a, datatype, [2, 3], binary_a),
            tensor("b", b, datatype, [2, 3], binary_b),
        ]
        answer = call(
            daemon,
            inputs if a_first else inputs[::-1],
            f"/v2/models/{model}/versions/1/infer",
            id="x-1",
            outputs=[{"name": "result", "parameters": {"binary_data": binary_output}}],
        )
        values, shape, document = result(answer)
        assert values == [-24, 22] and shape == [2, 1]
        assert document["outputs"][0]["datatype"] == output
        assert (LENGTH in answer.headers) == binary_output
        assert document["id"] == "x-1"
        assert document["model_name"] == model and document["model_version"] == "1"


@pytest.mark.every_build
def test_a_body_may_be_cut_anywhere(daemon):
    inputs = [tensor("a", A, *BINARY), tensor("b", B, *BINARY)]
    document = json.dumps({"inputs": [described for described, _ in inputs]}).encode()
    body = document + b"".join(blob for _, blob in inputs)
    random.seed(6)
    cuts = [sorted(random.sample(range(1, len(body)), 4)) for _ in range(20)]
    for cut in cuts + [[len(document)], [len(document) + 5]]:
        pieces = [body[i:j] for i, j in zip([0, *cut], [*cut, len(body)])]
        answer = daemon.call(
            "POST",
            "/v2/models/dot/infer",
            iter(pieces),
            {LENGTH: str(len(document)), "Transfer-Encoding": "chunked"},
            encode_chunked=True,
        )
        assert result(answer)[0] == [-2.5]


def test_what_the_content_type_says_does_not_matter(daemon):
    for kind in ("application/octet-stream", "application/x-www-form-urlencoded", "text/html"):
        for inputs in (PAIR, [tensor("a", A, *BINARY), tensor("b", B)]):
            assert result(call(daemon, inputs, headers={"Content-Type": kind}))[0] == [-2.5]


def test_the_length_header_may_be_given_for_json_alone_and_in_any_case(daemon):
    document = {"inputs": [described for described, _ in PAIR]}
    size = len(json.dumps(document))
    assert result(call(daemon, PAIR, length=size))[0] == [-2.5]
    headers = {LENGTH.lower(): str(size)}
    assert result(call(daemon, PAIR, headers=headers))[0] == [-2.5]


@pytest.mark.parametrize(
    "shape_a, shape_b, shape",
    [
        ([6], [6], [1]),
        ([1, 6], [6], [1, 1]),
        ([2, 3], [2, 3], [2, 1]),
        ([2, 3], [1, 3], [2, 1]),
        ([2, 3], [3], [2, 1]),
        ([2, 1, 3], [2, 3], [2, 2, 1]),
        ([1, 1, 1, 1, 1, 1, 2, 3], [2, 3], [1, 1, 1, 1, 1, 1, 2, 1]),
        ([0], [0], [1]),
        ([2, 0], [0], [2, 1]),
        ([0, 3], [0, 3], [0, 1]),
    ],
)
@pytest.mark.parametrize("as_bytes", [False, True])
def test_batches_broadcast_and_the_result_ends_with_a_dimension_of_1(
    daemon, shape_a, shape_b, shape, as_bytes
):
    def values(dims, start):
        count = 1
        for dim in dims:
            count *= dim
        return [float(start + i) for i in range(count)]

    a, b = values(shape_a, 1), values(shape_b, -2)
    inputs = [tensor("a", a, "FP32", shape_a, as_bytes), tensor("b", b, "FP32", shape_b, as_bytes)]
    got, got_shape, _ = result(call(daemon, inputs, parameters={"binary_data_output": as_bytes}))
    assert got_shape == shape
    n = shape_a[-1]
    rows_a = [a[i : i + n] for i in range(0, len(a), n)] if n else [[]] * (len(got))
    rows_b = [b[i : i + n] for i in range(0, len(b), n)] if n else [[]]
    if shape == [2, 2, 1]:
        pairs = [(x, y) for x in rows_a for y in rows_b]
    else:
        pairs = [(x, rows_b[i % len(rows_b)]) for i, x in enumerate(rows_a)]
    assert got == [sum(x * y for x, y in zip(*pair)) for pair in pairs]


def test_data_may_nest_as_it_likes(daemon):
    for data in ([1, 2, 3, 4], [[1, 2], [3, 4]], [[1], [2], [3], [4]], [[[1, 2, 3, 4]]]):
        inputs = [tensor("a", [], "FP32", [2, 2], data=data), tensor("b", [1, 10])]
        assert result(call(daemon, inputs))[0] == [21, 43]


def test_sums_are_exact_unless_a_parameter_says_otherwise(daemon):
    inputs = [tensor("a", [1e16, 1, -1e16], "FP64"), tensor("b", [1, 1, 1], "FP64")]
    path = "/v2/models/dot_fp64/infer"
    answer = call(daemon, inputs, path)
    assert result(answer)[0] == [1]
    assert answer.headers["Dotd-Kernel"] == "exact" and answer.headers["Dotd-Device"] == "cpu"
    assert "Dotd-Flags" not in answer.headers and answer.headers["Dotd-Error-Bound"] == "0.0"
    assert "total;dur=" in answer.headers["Server-Timing"]
    fast = call(daemon, inputs, path, parameters={"accuracy": "fast"})
    assert fast.headers["Dotd-Kernel"] != "exact" and fast.headers["Dotd-Flags"] == "inexact"
    assert call(daemon, inputs, path + "?accuracy=fast").headers["Dotd-Flags"] == "inexact"
    assert "accuracy" in error(call(daemon, inputs, path, parameters={"accuracy": "good"}), 400)
    assert "/parameters" in error(call(daemon, inputs, path, parameters={"kernel": 1}), 400)


def test_numbers_that_are_not_finite_travel_as_words(daemon):
    for a, b, word in [
        ("[NaN]", "[1]", "NaN"),
        ("[Infinity]", "[1]", "Infinity"),
        ('["-Infinity"]', "[2]", "-Infinity"),
        ("[Infinity]", "[0]", "NaN"),
    ]:
        body = (
            '{"inputs":[{"name":"a","shape":[1],"datatype":"FP32","data":%s},'
            '{"name":"b","shape":[1],"datatype":"FP32","data":%s}]}' % (a, b)
        )
        answer = daemon.call("POST", "/v2/models/dot/infer", body)
        assert answer.status == 200 and f'"data": [{word}]'.encode() in answer.body


def test_an_id_is_echoed_and_an_empty_one_is_none(daemon):
    assert "id" not in result(call(daemon, PAIR))[2]
    assert "id" not in result(call(daemon, PAIR, id=""))[2]
    odd = 'ü"\\\n'
    assert result(call(daemon, PAIR, id=odd))[2]["id"] == odd
    assert result(call(daemon, PAIR, id="x" * 128))[2]["id"] == "x" * 128
    error(call(daemon, PAIR, id="x" * 129), 400)
    error(call(daemon, PAIR, id=7), 400)
    error(call(daemon, PAIR, id=None), 400)


def test_where_the_result_stands_is_the_outputs_word_then_the_requests(daemon):
    def binary(**members):
        return LENGTH in call(daemon, PAIR, **members).headers

    listed = [{"name": "result"}]
    assert not binary()
    assert binary(parameters={"binary_data_output": True})
    assert binary(parameters={"binary_data_output": True}, outputs=[])
    assert not binary(parameters={"binary_data_output": True}, outputs=listed)
    assert binary(outputs=[{"name": "result", "parameters": {"binary_data": True}}])


def test_what_is_unknown_is_passed_over(daemon):
    inputs = [tensor("a", A, parameters={"colour": "red"}), tensor("b", B, priority=1)]
    answer = call(
        daemon,
        inputs,
        model_name="dot",
        data=[1],
        parameters={"sequence_id": 0, "priority": 3, "mine": "x"},
        outputs=[{"name": "result", "data": [[]], "parameters": {"mine": 1}}],
    )
    assert result(answer)[0] == [-2.5]


def a_with(**changes):
    return [tensor("a", A, **changes), tensor("b", B)]


@pytest.mark.parametrize(
    "inputs, members, words",
    [
        (a_with(name="c"), {}, "no input"),
        (a_with(name="b"), {}, "twice"),
        (a_with(name=None), {}, "name"),
        (a_with(name=1), {}, "name"),
        ([tensor("b", B)], {}, "input a is missing"),
        ([], {}, "input a is missing"),
        (a_with(datatype="FP64"), {}, "dot_fp64 takes FP64"),
        (a_with(datatype="fp32"), {}, "takes FP32"),
        (a_with(datatype="FP8"), {}, "takes FP32"),
        (a_with(datatype=None), {}, "datatype"),
        (a_with(shape=[4]), {}, "3 elements"),
        (a_with(shape=[2]), {}, "3 elements"),
        (a_with(shape=[-3]), {}, "/inputs/0/shape/0"),
        (a_with(shape=[3.0]), {}, "/inputs/0/shape/0"),
        (a_with(shape="3"), {}, "shape"),
        (a_with(shape=[]), {}, "dimensions"),
        (a_with(shape=[3] + [1] * 8), {}, "dimensions"),
        (a_with(shape=[1 << 62, 3]), {}, "2^63"),
        (a_with(data=None), {}, "neither"),
        (a_with(parameters={"binary_data_size": 12}), {}, "both"),
        (a_with(parameters=[]), {}, "an object"),
        (a_with(parameters={"shared_memory_region": "x"}), {}, "shared memory"),
        (a_with(data=3), {}, "array"),
        (a_with(data="AAAA"), {}, "array"),
        (a_with(data=[1, "2", 3]), {}, "/inputs/0/data/1"),
        (a_with(data=[1, None, 3]), {}, "/inputs/0/data/1"),
        (a_with(data=[[1], [2, 3]]), {}, "/inputs/0/data"),
        (a_with(data=[[[[[[[[[[1, 2, 3]]]]]]]]]]), {}, "/inputs/0/data"),
        ([tensor("a", [1, 2]), tensor("b", B)], {}, "shape"),
        (PAIR, {"outputs": [{"name": "sum"}]}, "no output"),
        (PAIR, {"outputs": [{"name": "result"}, {"name": "result"}]}, "twice"),
        (PAIR, {"outputs": [7]}, "object"),
        (PAIR, {"outputs": "result"}, "array"),
        (PAIR, {"outputs": [{"name": "result", "parameters": {"binary_data": 1}}]}, "binary_data"),
        (PAIR, {"outputs": [{"name": "result", "parameters": {"classification": 1}}]}, "classes"),
        (
            PAIR,
            {"outputs": [{"name": "result", "parameters": {"shared_memory_region": "x"}}]},
            "shared memory",
        ),
        (PAIR, {"parameters": 7}, "object"),
        (PAIR, {"parameters": {"timeout": "soon"}}, "timeout"),
        (PAIR, {"parameters": {"timeout": -1}}, "timeout"),
        (PAIR, {"parameters": {"device": "tpu"}}, "device"),
    ],
)
def test_a_request_that_is_no_inference_is_400_and_says_why(daemon, inputs, members, words):
    assert words in error(call(daemon, inputs, **members), 413 if words == "2^63" else 400)


@pytest.mark.parametrize(
    "body, words",
    [
        (b"", "empty"),
        (b"[]", "begins with '['"),
        (b'{"inputs":[', "JSON"),
        (b'{"inputs":[]} x', "JSON"),
        (b'{"inputs":{}}', "array"),
        (b'{"inputs":[7]}', "object"),
        (b'{"inputs":[],"inputs":[]}', "twice"),
        (b'{"a":[1],"b":[2]}', "inputs is missing"),
        (b'{"inputs":[{"data":[1,', "ends inside"),
        (b"\0" * 100, "begins with"),
    ],
)
def test_a_body_that_is_no_such_document_is_400(daemon, body, words):
    assert words in error(daemon.call("POST", "/v2/models/dot/infer", body), 400)


def test_int8_takes_whole_numbers_of_its_range(daemon):
    def ask_for(value):
        inputs = [tensor("a", [value], "INT8"), tensor("b", [1], "INT8")]
        return call(daemon, inputs, "/v2/models/dot_int8/infer")

    assert result(ask_for(-128))[0] == [-128]
    for value in (128, -129, 1.5):
        assert "/inputs/0/data/0" in error(ask_for(value), 400)


@pytest.mark.parametrize(
    "length, words",
    [
        ("-1", "not a number"),
        ("x", "not a number"),
        ("1.5", "not a number"),
        ("99999999999999999999999", "not a number"),
        ("99999999999", "has only"),
        ("0", "one input"),
        ("10", "JSON"),
    ],
)
def test_a_wrong_length_of_the_json_is_400(daemon, length, words):
    inputs = [tensor("a", A, *BINARY), tensor("b", B)]
    assert words in error(call(daemon, inputs, length=length), 400)


def test_bytes_without_the_length_header_are_told_to_need_it(daemon):
    inputs = [tensor("a", A, *BINARY), tensor("b", B)]
    for blob in (inputs[0][1], b"\xff" * (5 << 20), b'{"a":[' * 100, b""):
        told = error(call(daemon, [(inputs[0][0], blob), inputs[1]], length=False), 400)
        assert LENGTH in told


def test_bytes_that_are_too_few_or_too_many_are_400(daemon):
    (a, blob), b = tensor("a", A, *BINARY), tensor("b", B)
    assert "short" in error(call(daemon, [(a, blob[:-1]), b]), 400)
    assert "goes on" in error(call(daemon, [(a, blob + b"x"), b]), 400)
    for size in (11, 13, -12, 0, 1 << 62, "12", 12.0):
        wrong = dict(a, parameters={"binary_data_size": size})
        assert "binary_data_size" in error(call(daemon, [(wrong, blob), b]), 400)


@pytest.mark.parametrize(
    "path",
    [
        "/v2/nonesuch",
        "/v2/models",
        "/v2/models/",
        "/v2/models/nonesuch",
        "/v2/models/dotty/infer",
        "/v2/models/dot/versions/2",
        "/v2/models/dot/versions/abc/infer",
        "/v2/models/dot/versions/",
        "/v2/models/dot/versions/1/nonesuch",
        "/v2/models/dot/infer/",
        "/v2/models//infer",
        "/v2/repository/models/dot/load",
    ],
)
def test_paths_and_models_that_are_not_there_are_404(daemon, path):
    error(daemon.get(path) if not path.endswith("infer") else call(daemon, PAIR, path), 404)


def test_another_method_is_405_and_lists_those_there_are(daemon):
    for method, path, allowed in [
        ("GET", "/v2/models/dot/infer", "POST"),
        ("PUT", "/v2", "GET, HEAD"),
        ("DELETE", "/v2/repository/index", "GET, HEAD, POST"),
    ]:
        answer = daemon.call(method, path)
        error(answer, 405)
        assert answer.headers["Allow"] == allowed


def test_options_of_other_calls_are_refused_in_the_query(daemon):
    for query in ("dtype=float32", "shape_a=3", "nonesuch=1", "result_dtype=float32", "id=x"):
        error(call(daemon, PAIR, "/v2/models/dot/infer?" + query), 400)


@pytest.mark.every_build
def test_metadata_of_every_model(daemon):
    server = daemon.get("/v2").ok()
    assert server == daemon.get("/v2/").ok()
    assert server["name"] == "dotd" and "binary_tensor_data" in server["extensions"]
    for model, (datatype, output) in MODELS.items():
        for path in (f"/v2/models/{model}", f"/v2/models/{model}/versions/1"):
            told = daemon.get(path).ok()
            assert told["name"] == model and told["versions"] == ["1"]
            assert told["inputs"] == [
                {"name": name, "datatype": datatype, "shape": [-1, -1]} for name in "ab"
            ]
            assert told["outputs"] == [{"name": "result", "datatype": output, "shape": [-1, 1]}]
            config = daemon.get(path + "/config").ok()
            assert config["max_batch_size"] == 1 << 20
            assert config["input"][1] == {"name": "b", "data_type": f"TYPE_{datatype}", "dims": [-1]}
            assert config["model_transaction_policy"] == {"decoupled": False}
            assert daemon.get(path + "/ready").ok() == {"name": model, "ready": True}
    assert daemon.get("/v2/health/live").ok() == {"live": True}
    assert daemon.get("/v2/health/ready").ok() == {"ready": True}


def test_the_index_lists_the_models_whatever_is_asked(daemon):
    expected = [{"name": model, "version": "1", "state": "READY"} for model in MODELS]
    assert daemon.get("/v2/repository/index").ok() == expected
    with daemon.wire() as wire:
        wire.send(b"POST /v2/repository/index HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.answer().ok() == expected
        wire.send(post("/v2/repository/index", '{"ready":true}'))
        assert wire.answer().ok() == expected
        wire.send(post("/v2/repository/index", b"x" * 5000))
        error(wire.answer(), 413)


def stats(daemon, model):
    (told,) = daemon.get(f"/v2/models/{model}/stats").ok()["model_stats"]
    assert told in daemon.get("/v2/models/stats").ok()["model_stats"]
    return told


@pytest.mark.every_build
def test_statistics_count_what_was_computed_and_what_was_not(start_daemon):
    daemon = start_daemon(cuda="off", http_threads=2)
    before = stats(daemon, "dot")
    assert before["inference_count"] == before["last_inference"] == 0
    inputs = [tensor("a", A * 2, "FP32", [2, 3], True), tensor("b", B)]
    for _ in range(10):
        result(call(daemon, inputs))
    for _ in range(3):
        error(call(daemon, []), 400)
    error(call(daemon, PAIR, "/v2/models/nonesuch/infer"), 404)
    poll(lambda: stats(daemon, "dot")["inference_stats"]["fail"]["count"] == 3, "three failures")
    after = stats(daemon, "dot")
    times = after["inference_stats"]
    assert after["version"] == "1" and after["last_inference"] > 1.7e12
    assert after["inference_count"] == 20 and after["execution_count"] == 10
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    assert {times[part]["count"] for part in (*parts, "success")} == {10}
    assert times["success"]["ns"] >= sum(times[part]["ns"] for part in parts) > 0
    assert times["cache_hit"] == times["cache_miss"] == {"count": 0, "ns": 0}
    assert stats(daemon, "dot_fp64")["inference_count"] == 0

    metrics = Exposition(daemon.get("/metrics").body.decode())
    for outcome, count in {"success": 10, "invalid": 3, "error": 0}.items():
        labels = {"model": "dot", "version": "1", "outcome": outcome}
        assert metrics.get("dotd_model_requests_total", **labels) == count
    assert metrics.get("dotd_model_results_total", model="dot", version="1") == 20
    assert metrics.get("dotd_inference_requests_total", outcome="success") == 10
    infer = {"path": "/v2/models/{model}/infer", "method": "POST"}
    assert metrics.get("dotd_http_requests_total", **infer, code="400") == 3


def test_a_timeout_is_in_microseconds_and_is_504(start_faulty):
    daemon = start_faulty(inline_terms=0)
    daemon.fault.say("hang")
    answer = call(daemon, PAIR, parameters={"timeout": 1500, "device": "cuda"})
    assert error(answer, 504).endswith("2 ms of the request's timeout")


@pytest.mark.every_build
def test_a_job_for_a_device_is_answered_when_it_is_back(start_daemon):
    daemon = start_daemon(cuda="off", inline_terms=0)
    assert result(call(daemon, [tensor("a", A, *BINARY), tensor("b", B)]))[0] == [-2.5]


# ---- refusals and large bodies -----------------------------------------------------------------


def send_all_then_read(daemon, head, body):
    """As clients of this protocol do: not a byte is read before all are sent."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=60) as link:
        link.sendall(head)
        sent = memoryview(body)
        for start in range(0, len(sent), 1 << 20):
            link.sendall(sent[start : start + (1 << 20)])
        reader = link.makefile("rb")
        line = reader.readline()
        headers = {}
        while (field := reader.readline().strip()) != b"":
            name, _, value = field.partition(b":")
            headers[name.lower()] = value.strip()
        told = reader.read(int(headers[b"content-length"]))
        link.sendall(get("/v2/health/live"))
        assert reader.readline() == b"HTTP/1.1 200 OK\r\n", "the connection did not live on"
        return int(line.split()[1]), json.loads(told)


BIG = 24 << 20  # more than every buffer between the two


@pytest.mark.every_build
@pytest.mark.parametrize(
    "path, headers, status, words",
    [
        ("/v2/models/dot/infer", {}, 413, "larger than"),
        ("/v2/models/nonesuch/infer", {}, 404, "no model"),
        ("/v2/models/dot/infer?nonesuch=1", {}, 400, "nonesuch"),
        ("/v2/models/dot/infer", {LENGTH: "x"}, 400, "not a number"),
        ("/v2/nonesuch", {}, 404, "nothing"),
    ],
)
def test_a_client_that_sends_all_first_hears_why_it_was_refused(
    start_daemon, path, headers, status, words
):
    daemon = start_daemon(cuda="off", max_body_bytes=BIG - (status == 413))
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {BIG}\r\n{fields}\r\n".encode()
    got, document = send_all_then_read(daemon, head, bytes(BIG))
    assert got == status and words in document["error"]


def test_a_body_refused_in_its_middle_is_read_to_its_end_without_operands(start_daemon):
    daemon = start_daemon(cuda="off")
    head = f"POST /v2/models/dot/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {BIG}\r\n\r\n".encode()
    start = b'{"inputs":[{"name":"a","data":[' + b"1," * (1 << 20) + b"x"
    body = start + b"1" * (BIG - len(start))
    got, document = send_all_then_read(daemon, head, body)
    assert got == 400 and "/inputs/0/data/1048576" in document["error"]
    with daemon.wire() as wire:
        wire.send(head + body[: len(start) + 5000])
        daemon.wait_status(lambda status: status["memory"]["used_bytes"] == 0)


def test_a_client_that_waits_to_be_told_to_go_on_is_refused_at_once(daemon):
    with daemon.wire() as wire:
        wire.send(
            b"POST /v2/models/nonesuch/infer HTTP/1.1\r\nHost: x\r\n"
            b"Content-Length: 100000000\r\nExpect: 100-continue\r\n\r\n"
        )
        error(wire.answer(), 404)


def test_a_refused_body_that_never_ends_has_the_time_of_a_body(start_daemon):
    daemon = start_daemon(cuda="off", body_timeout_ms=300)
    with daemon.wire() as wire:
        wire.send(
            b"POST /v2/models/nonesuch/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nx"
        )
        error(wire.answer(), 404)
        assert wire.answer() is None


def large(n, names="ab"):
    """Two vectors as bytes whose sum float32 would lose: 1.5 * 2 and, once, 2^60 and -2^60."""
    values = {"a": bytearray(struct.pack("<f", 1.5) * n), "b": bytearray(struct.pack("<f", 2) * n)}
    struct.pack_into("<2f", values["a"], 4 * (n // 3), 2.0**60, -(2.0**60))
    parameters = {"binary_data_size": 4 * n}
    return [
        (
            {"name": name, "shape": [n], "datatype": "FP32", "parameters": parameters},
            bytes(values[name]),
        )
        for name in names
    ]


@pytest.mark.every_build
@pytest.mark.parametrize("names", numbers("ab", "ba"))
@pytest.mark.parametrize("inline_terms", [0, 65536])
def test_one_row_of_bytes_is_summed_while_it_arrives(start_daemon, names, inline_terms):
    n = 6 << 20
    daemon = start_daemon(cuda="off", memory_budget_bytes=40 << 20, inline_terms=inline_terms)
    answer = call(daemon, large(n, names))
    assert result(answer)[0] == [3.0 * (n - 2)]
    assert answer.headers["Dotd-Kernel"] == "exact"
    short = large(n, names)
    short[1] = (short[1][0], short[1][1][:-3])
    assert "3 bytes short" in error(call(daemon, short), 400)
    long = large(n, names)
    long[1] = (long[1][0], long[1][1] + b"x")
    assert "goes on" in error(call(daemon, long), 400)
    daemon.wait_status(lambda status: status["memory"]["used_bytes"] == 0)


def test_what_is_not_one_row_needs_memory_for_both(start_daemon):
    n = 3 << 20
    daemon = start_daemon(cuda="off", memory_budget_bytes=20 << 20)
    inputs = [(dict(described, shape=[3, n // 3]), blob) for described, blob in large(n)]
    assert "memory_budget_bytes" in error(call(daemon, inputs), 413)
    assert "memory_budget_bytes" in error(
        call(start_daemon(cuda="off", memory_budget_bytes=8 << 20), large(n)), 413
    )


def test_options_of_the_body_apply_to_a_row_that_is_summed_while_it_arrives(daemon):
    inputs = large(1 << 18)
    fast = call(daemon, inputs, parameters={"accuracy": "fast"})
    assert fast.headers["Dotd-Kernel"] == daemon.get("/v1/devices").ok()["devices"][0]["kernel"]
    rung = call(daemon, inputs, parameters={"kernel": "grid-atomic"})
    assert rung.headers["Dotd-Kernel"] == "grid-atomic", rung.body
    assert "nonesuch" in error(call(daemon, inputs, parameters={"kernel": "nonesuch"}), 400)
    assert "cuda:7" in error(call(daemon, inputs, parameters={"device": "cuda:7"}), 503)


def test_many_clients_at_once_get_their_own_results(start_daemon):
    daemon = start_daemon(cuda="off", inline_terms=0)
    wrong = []

    def work(seed):
        connection = daemon.connect()
        for i in range(25):
            value = seed * 1000 + i
            inputs = [tensor("a", [value], "FP32", [1], i % 2 == 0), tensor("b", [1])]
            document = json.dumps({"id": str(value), "inputs": [t for t, _ in inputs]}).encode()
            headers = {LENGTH: str(len(document))}
            body = document + inputs[0][1]
            got, _, told = result(ask(connection, "POST", "/v2/models/dot/infer", body, headers))
            if got != [value] or told["id"] != str(value):
                wrong.append((value, got, told))
        connection.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
