"""The ladder of kernels: GET /v1/kernels, and /v1/dot with the kernel of a rung."""

import json
import random
import struct
from fractions import Fraction

import pytest

from client import ROOT, Daemon, post
from reductions import narrow, power_of_two, serial_sum, tree_sum

RUNGS = [
    "race",
    "serial",
    "tree-pairs",
    "tree",
    "thread-atomic",
    "block-atomic",
    "warp-shuffle",
    "grid-atomic",
    "two-pass",
    "exact",
]
ONE_BLOCK = ["serial", "tree-pairs", "tree"]
LONG = ["thread-atomic", "block-atomic", "warp-shuffle", "grid-atomic", "two-pass"]
LENGTHS = [1, 2, 3, 31, 32, 33, 100, 255, 256, 257, 1000, 1024]
EMULATED_MOST = 1 << 20  # products of a request that a rung computes without a GPU


@pytest.fixture(scope="module")
def ladder_daemon(binary, tmp_path_factory):
    """One with every device that opens."""
    daemon = Daemon(binary, tmp_path_factory.mktemp("ladder") / "stderr")
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def device(request, ladder_daemon):
    """Each kind of device that there is; the others are skipped, by name."""
    names = [device["id"] for device in ladder_daemon.get("/v1/devices").ok()["devices"]]
    if not any(name.startswith(request.param) for name in names):
        pytest.skip(f"no {request.param} here")
    return request.param


@pytest.fixture
def ladder(ladder_daemon):
    yield ladder_daemon
    ladder_daemon.check()


def kernels(daemon, query=""):
    return {row["name"]: row for row in daemon.get("/v1/kernels" + query).ok()["kernels"]}


def vectors(n, dtype, seed):
    draw = random.Random(f"{n} {dtype} {seed}")
    return [[narrow(draw.uniform(-1, 1), dtype) for _ in range(n)] for _ in range(2)]


def exact_sum(a, b):
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a, b)), Fraction(0))


# ---- GET /v1/kernels -----------------------------------------------------------------------------


def test_kernels_are_listed_from_the_first_rung_to_the_last(daemon):
    listed = daemon.get("/v1/kernels").ok()
    assert (listed["n"], listed["block"], listed["dtype"]) == (1024, None, "float32")
    assert [row["name"] for row in listed["kernels"]] == RUNGS
    for row in listed["kernels"]:
        assert row["idea"].endswith(".") and row["point"] and row["arithmetic"], row
        assert (ROOT / row["source"]).is_file(), row
        assert row["dtypes"] == ["float32", "float64"]
        assert row["max_n"] == (1024 if row["name"] in ONE_BLOCK else None)
        assert row["lab_only"] == (row["name"] == "race")
    orders = {row["name"]: row["order"] for row in listed["kernels"]}
    assert orders == dict.fromkeys(RUNGS, "any") | dict.fromkeys(
        [*ONE_BLOCK, "two-pass"], "fixed"
    ) | {"exact": "none matters"}


@pytest.mark.parametrize(
    "name, query, expected",
    [
        (
            "serial",
            "?n=1024",
            {"blocks": 1, "threads": 1024, "steps": 1023, "barriers": 1, "atomics": 0},
        ),
        (
            "tree",
            "?n=1024",
            {"blocks": 1, "threads": 1024, "steps": 10, "barriers": 11, "atomics": 0},
        ),
        ("tree", "?n=100&block=100", {"blocks": 1, "threads": 100, "steps": 7, "barriers": 8}),
        ("tree", "?n=5", {"blocks": 1, "threads": 8, "steps": 3, "barriers": 4}),
        ("tree-pairs", "?n=1000", {"blocks": 1, "threads": 1024, "steps": 10, "barriers": 11}),
        ("thread-atomic", "?n=1000", {"blocks": 4, "threads": 256, "barriers": 0, "atomics": 1000}),
        (
            "block-atomic",
            "?n=1000000",
            {"blocks": 3907, "steps": 8, "barriers": 9, "atomics": 3907},
        ),
        (
            "block-atomic",
            "?n=1024&block=128",
            {"blocks": 8, "steps": 7, "barriers": 8, "atomics": 8},
        ),
        ("warp-shuffle", "?n=1024", {"blocks": 4, "steps": 8, "barriers": 4, "atomics": 4}),
        ("two-pass", "?n=1024", {"launches": 2, "blocks": 4, "barriers": 18, "atomics": 0}),
    ],
)
def test_kernels_say_what_they_take(daemon, name, query, expected):
    takes = kernels(daemon, query)[name]["takes"]
    assert {field: takes[field] for field in expected} == expected


def test_a_kernel_takes_nothing_beyond_its_limits(daemon):
    too_long = kernels(daemon, "?n=1025")
    assert {name for name in RUNGS if too_long[name]["takes"] is None} == set(ONE_BLOCK)
    small_block = kernels(daemon, "?n=1024&block=100")
    nothing = {name for name in RUNGS if small_block[name]["takes"] is None}
    assert nothing == {*ONE_BLOCK, "warp-shuffle"}  # a warp has 32 threads


@pytest.mark.parametrize("page", ["/v1/kernels?dtype=f64", "/v1/kernels?dtype=%3Cf8"])
def test_kernels_are_told_of_for_float64_too(daemon, page):
    assert daemon.get(page).ok()["dtype"] == "float64"


@pytest.mark.parametrize(
    "query, status, name, pointer",
    [
        ("n=0", 422, "bad-value", "/n"),
        ("n=", 422, "bad-value", "/n"),
        ("n", 422, "bad-value", "/n"),
        ("n=-1", 422, "bad-value", "/n"),
        ("n=1e3", 422, "bad-value", "/n"),
        ("n=99999999999999999999999999", 422, "bad-value", "/n"),
        ("block=0", 422, "bad-value", "/block"),
        ("block=1025", 422, "bad-value", "/block"),
        ("dtype=int8", 422, "unknown-dtype", "/dtype"),
        ("dtype", 422, "unknown-dtype", "/dtype"),
        ("nonesuch=1", 400, "bad-option", None),
    ],
)
def test_what_kernels_do_not_take_is_refused(daemon, query, status, name, pointer):
    assert daemon.get(f"/v1/kernels?{query}").problem(status, name).get("pointer") == pointer


def test_kernels_are_only_told_of(daemon):
    daemon.call("POST", "/v1/kernels", b"{}").problem(405, "method-not-allowed")
    assert daemon.call("HEAD", "/v1/kernels").status == 200


# ---- /v1/dot with a kernel -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*ONE_BLOCK, *LONG])
def test_every_rung_is_within_its_bound(ladder, device, name, dtype):
    for n in LENGTHS:
        a, b = vectors(n, dtype, name)
        answer = ladder.dot({"a": a, "b": b, "dtype": dtype, "kernel": name, "device": device}).ok()
        off = abs(Fraction(answer["result"]) - exact_sum(a, b))
        assert off <= Fraction(answer["error_bound"]), (n, answer)
        assert answer["error_bound"] <= n * 2.0**-23 * n, (n, answer)
        assert (answer["kernel"], answer["accuracy"], answer["n"]) == (name, "fast", n)
        assert answer["device"].startswith(device)
        assert ("emulated" in answer["device_name"]) == (device == "cpu")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_rungs_of_a_fixed_order_have_the_bits_of_that_order(ladder, device, n, dtype):
    a, b = vectors(n, dtype, "fixed")
    block = power_of_two(n)
    expected = {
        "serial": serial_sum(a, b, dtype),
        "tree": tree_sum(a, b, block, dtype, "stride"),
        "tree-pairs": tree_sum(a, b, block, dtype, "pairs"),
    }
    for name, value in expected.items():
        request = {"a": a, "b": b, "dtype": dtype, "kernel": name, "device": device}
        assert ladder.dot(request).ok()["result"] == value, name


def test_any_order_is_right_where_nothing_rounds(ladder, device):
    a, b = list(range(1, 1001)), [1] * 1000
    for name in LONG + ["serial", "tree", "tree-pairs"]:
        request = {"a": a, "b": b, "dtype": "float32", "kernel": name, "device": device}
        assert ladder.dot(request).ok()["result"] == 500500.0, name


def test_long_vectors_go_through_many_blocks(ladder, device):
    n = 100_000
    body = struct.pack("<f", 0.5) * n + struct.pack("<f", 2.0) * n
    for name in LONG:
        query = f"dtype=float32&kernel={name}&device={device}"
        assert ladder.raw(body, query).ok()["result"] == float(n), name


def test_a_kernel_computes_rows_and_pairs(daemon):
    rows = {"a": [[1, 2], [3, 4]], "b": [[[5, 6]], [[7, 8]]], "kernel": "tree"}
    answer = daemon.dot(rows).ok()
    assert (answer["result"], answer["shape"]) == ([[17.0, 39.0], [23.0, 53.0]], [2, 2])
    pairs = {"pairs": [{"a": [1, 2, 3], "b": [4, 5, 6]}, {"a": [7], "b": [8]}], "kernel": "serial"}
    assert daemon.dot(pairs).ok()["result"] == [32.0, 56.0]


def test_a_kernel_is_named_in_the_query_as_well(daemon):
    assert daemon.get("/v1/dot?a=1,2,3&b=4,5,6&kernel=tree").ok()["kernel"] == "tree"
    raw = daemon.raw(
        struct.pack("<4f", 1, 2, 3, 4),
        "dtype=f32&kernel=two-pass&device=cpu",
        {"Accept": "application/octet-stream"},
    )
    assert struct.unpack("<d", raw.body) == (11.0,)
    assert (raw.headers["Dotd-Kernel"], raw.headers["Dotd-Device"]) == ("two-pass", "cpu")


def test_an_empty_vector_is_zero_by_any_kernel(daemon):
    for name in ONE_BLOCK + LONG:
        answer = daemon.dot({"a": [], "b": [], "dtype": "float32", "kernel": name}).ok()
        assert (answer["result"], answer["error_bound"]) == (0.0, 0.0), name


def test_nan_and_infinity_pass_through_a_kernel(daemon):
    for name in ONE_BLOCK + LONG:
        text = daemon.dot({"a": [1, "NaN"], "b": [1, 1], "dtype": "float32", "kernel": name}).ok()
        assert text["result_text"] == "NaN", name
        text = daemon.dot(
            {"a": [1, "Infinity"], "b": [1, 1], "dtype": "float32", "kernel": name}
        ).ok()
        assert text["result_text"] == "Infinity", name


def test_a_sum_is_rounded_to_the_result_type_that_is_asked_for(daemon):
    request = {"a": [0.1, 0.2], "b": [1, 1], "kernel": "tree", "result_dtype": "float16"}
    answer = daemon.dot(request).ok()
    assert answer["result"] == 0.3
    off = abs(
        Fraction(struct.unpack("<e", struct.pack("<e", 0.3))[0]) - exact_sum([0.1, 0.2], [1, 1])
    )
    assert off <= Fraction(answer["error_bound"])


def test_exact_stays_what_it_was(daemon):
    answer = daemon.dot({"a": [1e16, 1, -1e16], "b": [1, 1, 1], "kernel": "exact"}).ok()
    assert (answer["result"], answer["kernel"], answer["accuracy"]) == (1.0, "exact", "exact")


@pytest.mark.parametrize("name", ONE_BLOCK)
def test_a_vector_beyond_the_kernels_limit_is_422_and_names_it(daemon, name):
    vector = [1] * 1025
    problem = daemon.dot({"a": vector, "b": vector, "kernel": name}).problem(422, "unknown-kernel")
    assert (problem["limit"], problem["pointer"]) == (1024, "/kernel")
    assert name in problem["detail"] and "1024" in problem["detail"]
    pairs = [{"a": [1], "b": [1]}, {"a": vector, "b": vector}]
    assert (
        daemon.dot({"pairs": pairs, "kernel": name}).problem(422, "unknown-kernel")["limit"] == 1024
    )


def test_what_the_emulation_would_take_too_long_for_is_refused(daemon):
    n = EMULATED_MOST + 1
    problem = daemon.raw(bytes(8 * n), "dtype=f32&kernel=block-atomic").problem(413, "too-large")
    assert problem["limit"] == EMULATED_MOST
    rows = daemon.raw(bytes(8 * 4097), "dtype=f32&kernel=tree&shape_a=4097,1&shape_b=4097,1")
    assert rows.problem(413, "too-large")["limit"] == 4096
    limits = daemon.get("/v1/limits").ok()["fixed"]
    assert (limits["kernel_terms_emulated"], limits["kernel_rows"]) == (EMULATED_MOST, 4096)


def test_race_is_only_in_the_lab(daemon):
    problem = daemon.dot({"a": [1], "b": [1], "kernel": "race"}).problem(422, "unknown-kernel")
    assert "/v1/lab/race" in problem["detail"] and problem["pointer"] == "/kernel"


def test_an_unknown_kernel_is_told_the_ladder(daemon):
    problem = daemon.dot({"a": [1], "b": [1], "kernel": "nonesuch"}).problem(422, "unknown-kernel")
    assert ", ".join(RUNGS) in problem["detail"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "int64", "complex64"])
def test_rungs_take_two_types(daemon, dtype):
    element = [1, 0] if dtype == "complex64" else 1
    request = {"a": [element], "b": [element], "dtype": dtype, "kernel": "tree"}
    assert dtype in daemon.dot(request).problem(422, "unknown-dtype")["detail"]


def test_a_rung_contradicts_an_exact_answer(daemon):
    request = {"a": [1], "b": [1], "kernel": "tree", "accuracy": "exact"}
    daemon.dot(request).problem(400, "bad-option")


@pytest.mark.parametrize("wanted", ["cuda", "cuda:0", "cuda:7"])
def test_a_rung_goes_to_no_device_that_is_not_there(daemon, wanted):
    request = {"a": [1], "b": [1], "kernel": "tree", "device": wanted}
    daemon.dot(request).problem(503, "no-device")


@pytest.mark.every_build
def test_requests_with_kernels_and_without_do_not_meet(daemon):
    with daemon.wire() as wire:
        for i in range(1, 40):
            kernel = ["tree", "exact", "serial"][i % 3]
            body = json.dumps({"a": [i], "b": [2], "kernel": kernel, "id": str(i)})
            wire.send(post("/v1/dot", body))
        for i in range(1, 40):
            answer = wire.answer().ok()
            assert (answer["result"], answer["id"]) == (2.0 * i, str(i))
