"""NVIDIA's tritonclient, unchanged, against the daemon: every call that has an answer here."""

import asyncio
import re
import subprocess
import sys
from fractions import Fraction

import numpy
import pytest

from client import ROOT, poll

TYPES = {"dot": "FP32", "dot_fp64": "FP64", "dot_fp16": "FP16", "dot_bf16": "BF16", "dot_int8": "INT8"}
CODES = {"FP32": "f4", "FP64": "f8", "FP16": "f2", "INT8": "i1"}
CODINGS = [None, "gzip", "deflate"]


def element_type(model):
    if model == "dot_bf16":
        return pytest.importorskip("ml_dtypes", reason="ml_dtypes cannot be had").bfloat16
    return numpy.dtype(CODES[TYPES[model]])


def inputs(triton, model, a, b, binary_a=True, binary_b=True):
    """Both inputs as the client makes them."""
    made = []
    for name, values, binary in (("a", a, binary_a), ("b", b, binary_b)):
        tensor = triton.InferInput(name, list(values.shape), TYPES[model])
        tensor.set_data_from_numpy(values, binary_data=binary)
        made.append(tensor)
    return made


def exact(a, b):
    """What the daemon promises: each row's exact sum, rounded once."""
    rows = [
        sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(*pair)) for pair in zip(a, b)
    ]
    return [[float(row)] for row in rows]


def vectors(model, rows=3, n=50, seed=7):
    random = numpy.random.default_rng(seed)
    if model == "dot_int8":
        draw = random.integers(-128, 128, (2, rows, n))
    else:
        draw = random.standard_normal((2, rows, n))
    return draw.astype(element_type(model))


def refusal(call):
    with pytest.raises(Exception) as caught:
        call()
    assert type(caught.value).__name__ == "InferenceServerException", repr(caught.value)
    return caught.value


@pytest.mark.every_build
def test_what_server_and_models_tell_of_themselves(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.get_server_metadata()["name"] == "dotd"
    assert [row["name"] for row in client.get_model_repository_index()] == list(TYPES)
    for model, datatype in TYPES.items():
        assert client.is_model_ready(model) and client.is_model_ready(model, "1")
        told = client.get_model_metadata(model, "1")
        assert [(t["name"], t["datatype"]) for t in told["inputs"]] == [
            ("a", datatype),
            ("b", datatype),
        ]
        config = client.get_model_config(model)
        assert config["name"] == model and config["max_batch_size"] > 1
        assert config["input"][0]["data_type"] == f"TYPE_{datatype}"
    assert not client.is_model_ready("nonesuch") and not client.is_model_ready("dot", "2")


@pytest.mark.every_build
@pytest.mark.parametrize("model", TYPES)
@pytest.mark.parametrize("binary_output", [True, False, None])
@pytest.mark.parametrize("binary_a, binary_b", [(True, True), (False, True), (False, False)])
def test_every_type_in_every_form(triton, client, model, binary_a, binary_b, binary_output):
    if model == "dot_bf16" and not binary_a:
        pytest.skip("the client sends BF16 as bytes only")
    a, b = vectors(model)
    outputs = None
    if binary_output is not None:
        outputs = [triton.InferRequestedOutput("result", binary_data=binary_output)]
    answer = client.infer(
        model, inputs(triton, model, a, b, binary_a, binary_b), outputs=outputs, request_id="id 1"
    )
    assert answer.as_numpy("result").tolist() == exact(a, b)
    told = answer.get_response()
    assert told["id"] == "id 1" and told["model_name"] == model and told["model_version"] == "1"


def test_a_vector_and_a_batch_of_one(triton, client):
    a, b = vectors("dot", rows=1)
    assert client.infer("dot", inputs(triton, "dot", a, b)).as_numpy("result").shape == (1, 1)
    got = client.infer("dot", inputs(triton, "dot", a[0], b[0]), model_version="1")
    assert got.as_numpy("result").tolist() == exact(a, b)[0]
    empty = numpy.zeros((2, 0), "f4")
    for binary in (True, False):
        got = client.infer("dot", inputs(triton, "dot", empty, empty, binary, binary))
        assert got.as_numpy("result").tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("binary_output", [True, False])
def test_numbers_that_are_not_finite(triton, client, binary_output):
    a = numpy.array([[numpy.inf, 1], [numpy.nan, 1], [-numpy.inf, 1]], "f4")
    b = numpy.ones((3, 2), "f4")
    outputs = [triton.InferRequestedOutput("result", binary_data=binary_output)]
    for binary in (True, False):
        sent = inputs(triton, "dot", a, b, binary, binary)
        got = client.infer("dot", sent, outputs=outputs).as_numpy("result").ravel()
        assert str(got.tolist()) == "[inf, nan, -inf]"


def test_parameters_reach_the_daemon(triton, client):
    a = numpy.array([1e16, 1, -1e16])
    sent = inputs(triton, "dot_fp64", a, numpy.ones(3))
    assert client.infer("dot_fp64", sent).as_numpy("result").tolist() == [1.0]
    client.infer("dot_fp64", sent, parameters={"accuracy": "fast", "mine": 1}, priority=2)
    client.infer("dot_fp64", sent, timeout=60_000_000, query_params={"device": "cpu"})
    told = refusal(lambda: client.infer("dot_fp64", sent, parameters={"device": "tpu"}))
    assert "device" in told.message() and told.status() == "400"


def test_what_is_refused_is_told(triton, client):
    a, b = vectors("dot")
    sent = inputs(triton, "dot", a, b)
    for call, status, words in [
        (lambda: client.infer("nonesuch", sent), "404", "no model"),
        (lambda: client.infer("dot", sent, model_version="2"), "404", "no version"),
        (lambda: client.infer("dot_fp64", sent), "400", "dot takes FP32"),
        (lambda: client.infer("dot", sent[:1]), "400", "input b is missing"),
        (lambda: client.infer("dot", inputs(triton, "dot", a, b[:, :9])), "400", "dimensions"),
        (
            lambda: client.infer("dot", sent, outputs=[triton.InferRequestedOutput("sum")]),
            "400",
            "no output",
        ),
        (lambda: client.get_model_metadata("nonesuch"), "404", "no model"),
        (lambda: client.get_inference_statistics("nonesuch"), "404", "no model"),
        (lambda: client.load_model("dot"), "404", "nothing"),
    ]:
        told = refusal(call)
        assert told.status() == status and words in told.message(), told


@pytest.mark.every_build
@pytest.mark.parametrize("as_bytes", [True, False])
def test_a_large_body_that_is_refused_is_sent_once_and_told(
    triton, connect, start_daemon, as_bytes
):
    daemon = start_daemon(max_body_bytes=1 << 20)
    client = connect(daemon)
    a = numpy.ones((4, 1 << 19), "f4")
    sent = inputs(triton, "dot", a, a, as_bytes, as_bytes)
    told = refusal(lambda: client.infer("dot", sent))
    assert told.status() == "413" and "1048576" in told.message()
    daemon.wait_idle()  # an answer counts once it is sent, which the client may see first
    requests = daemon.get("/v1/status").ok()["requests"]
    assert requests["answers_4xx_total"] == 1
    small = a[:, :9]
    sent = inputs(triton, "dot", small, small)
    assert client.infer("dot", sent).as_numpy("result").tolist() == [[9.0]] * 4


@pytest.mark.every_build
def test_a_large_body_is_computed(triton, client):
    n = 1 << 21
    a = numpy.full((2, n), 1.5, "f4")
    b = numpy.full((2, n), -2, "f4")
    got = client.infer("dot", inputs(triton, "dot", a, b)).as_numpy("result")
    assert got.tolist() == [[-3.0 * n]] * 2


def test_many_at_once(triton, connect, start_daemon):
    client = connect(start_daemon(inline_terms=0), concurrency=8)
    pending = []
    for i in range(200):
        a = numpy.full((1, 3), i, "f4")
        sent = inputs(triton, "dot", a, numpy.ones((1, 3), "f4"), i % 2 == 0, i % 3 == 0)
        pending.append((i, client.async_infer("dot", sent, request_id=str(i))))
    for i, request in pending:
        answer = request.get_result()
        assert answer.as_numpy("result").tolist() == [[3.0 * i]]
        assert answer.get_response()["id"] == str(i)


@pytest.mark.parametrize("accepted", CODINGS)
@pytest.mark.parametrize("sent", CODINGS)
def test_compression_as_the_client_does_it(triton, client, sent, accepted):
    a, b = vectors("dot", rows=40)
    for binary in (True, False):
        answer = client.infer(
            "dot",
            inputs(triton, "dot", a, b, binary, binary),
            request_compression_algorithm=sent,
            response_compression_algorithm=accepted,
        )
        assert answer.as_numpy("result").tolist() == exact(a, b)


@pytest.mark.every_build
def test_statistics_grow(triton, connect, start_daemon):
    client = connect(start_daemon())
    a, b = vectors("dot_fp64")

    def read():
        (told,) = client.get_inference_statistics("dot_fp64")["model_stats"]
        return told

    before = read()
    for _ in range(5):
        client.infer("dot_fp64", inputs(triton, "dot_fp64", a, b))
    refusal(lambda: client.infer("dot_fp64", []))
    poll(lambda: read()["inference_stats"]["fail"]["count"] == 1, "one failure")
    after = read()
    assert after["inference_count"] - before["inference_count"] == 15
    assert after["execution_count"] - before["execution_count"] == 5
    times = after["inference_stats"]
    for part in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert times[part]["count"] == 5 and times[part]["ns"] >= 0
    assert len(client.get_inference_statistics()["model_stats"]) == len(TYPES)


def test_the_readme_s_program_prints_what_it_says(triton, daemon):
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (program,) = [program for program in programs if "tritonclient" in program]
    program = program.replace("127.0.0.1:8080", f"127.0.0.1:{daemon.port}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "32.0\n" and program.endswith("# 32.0\n"), done.stderr


@pytest.mark.every_build
def test_the_asyncio_client(triton, daemon):
    aio = pytest.importorskip("tritonclient.http.aio", reason="tritonclient cannot be had")

    async def ask(client, i):
        model = ("dot", "dot_fp64", "dot_fp16", "dot_int8")[i % 4]
        a, b = vectors(model, seed=i)
        sent = inputs(aio, model, a, b, i % 2 == 0, i % 3 == 0)
        outputs = [aio.InferRequestedOutput("result", binary_data=i % 5 != 0)]
        answer = await client.infer(model, sent, outputs=outputs, request_id=str(i))
        assert answer.as_numpy("result").tolist() == exact(a, b)
        assert answer.get_response()["id"] == str(i)

    async def run():
        async with aio.InferenceServerClient(f"127.0.0.1:{daemon.port}") as client:
            assert await client.is_server_live() and await client.is_model_ready("dot")
            assert (await client.get_model_metadata("dot"))["name"] == "dot"
            assert (await client.get_model_config("dot"))["name"] == "dot"
            assert (await client.get_model_repository_index())[0]["name"] == "dot"
            await asyncio.gather(*(ask(client, i) for i in range(40)))
            told = await client.get_inference_statistics("dot")
            assert told["model_stats"][0]["inference_count"] >= 30
            with pytest.raises(Exception, match="no model"):
                await client.infer("nonesuch", inputs(aio, "dot", *vectors("dot")))

    asyncio.run(run())
