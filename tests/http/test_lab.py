"""The lab: reductions, races, barriers and rounding, as the kernels themselves tell of them."""

import json
import math
import random
import struct
from fractions import Fraction

import pytest

from client import Daemon, post
from experiments import CALLS, GOOD, ask
from rationals import rounded, value_of
from reductions import PAIRS, bits, load, narrow, power_of_two, serial_sum, steps, tree_sum

LIMITS = {"traced": 4096, "rounding": 65536, "block": 1024, "race": 1 << 18, "measure": 1 << 16}
BODY_MOST = 4 << 20


@pytest.fixture(scope="module")
def lab_daemon(binary, tmp_path_factory):
    """One with every device that opens."""
    daemon = Daemon(binary, tmp_path_factory.mktemp("lab") / "stderr")
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def device(request, lab_daemon):
    """Each kind of device that there is; the others are skipped, by name."""
    names = [device["id"] for device in lab_daemon.get("/v1/devices").ok()["devices"]]
    if not any(name.startswith(request.param) for name in names):
        pytest.skip(f"no {request.param} here")
    return request.param


@pytest.fixture
def any_daemon(lab_daemon):
    yield lab_daemon
    lab_daemon.check()


def back(told, dtype):
    """Numbers as they were before they were written in their type's shortest form."""
    if isinstance(told, list):
        return [back(value, dtype) for value in told]
    return narrow(told, dtype) if isinstance(told, float) else told


def vectors(n, dtype="float32", seed=""):
    draw = random.Random(f"{n} {dtype} {seed}")
    return [[narrow(draw.uniform(-1, 1), dtype) for _ in range(n)] for _ in range(2)]


# ---- reduce --------------------------------------------------------------------------------------


@pytest.mark.every_build
def test_a_reduction_of_eight_is_told_step_by_step(daemon):
    answer = ask(daemon, "reduce", a=[1, 2, 3, 4, 5, 6, 7, 8], b=[8, 7, 6, 5, 4, 3, 2, 1]).ok()
    told = {name: answer[name] for name in ("scheme", "kernel", "device", "is_emulated", "dtype")}
    assert told == {
        "scheme": "stride",
        "kernel": "tree",
        "device": "cpu",
        "is_emulated": True,
        "dtype": "float32",
    }
    assert answer["device_name"].startswith("emulated CUDA on ")
    assert (answer["n"], answer["block"], answer["blocks"]) == (8, 8, 1)
    assert (answer["value"], answer["bits"], answer["exact"]) == (120.0, "0x42f00000", 120.0)
    assert (answer["order"], answer["is_cut"], answer["faults"]) == ("fixed", False, [])
    assert answer["counts"] == {
        "steps": 3,
        "barriers": 4,
        "atomics": 0,
        "bank_conflicts": 0,
        "idle_warps": 0,
        "active_threads": 8 + 4 + 2 + 1 + 1,
    }
    shared = [step["shared"] for step in answer["steps"]]
    assert shared == [
        [8.0, 14.0, 18.0, 20.0, 20.0, 18.0, 14.0, 8.0],
        [28.0, 32.0, 32.0, 28.0, 20.0, 18.0, 14.0, 8.0],
        [60.0, 60.0, 32.0, 28.0, 20.0, 18.0, 14.0, 8.0],
        [120.0, 60.0, 32.0, 28.0, 20.0, 18.0, 14.0, 8.0],
        [120.0, 60.0, 32.0, 28.0, 20.0, 18.0, 14.0, 8.0],
    ]
    assert [step["what"] for step in answer["steps"]] == ["load", "add", "add", "add", "read"]
    assert [step["active"] for step in answer["steps"]] == [
        [*range(8)],
        [0, 1, 2, 3],
        [0, 1],
        [0],
        [0],
    ]
    assert answer["steps"][2]["writes"] == [[0, 0], [1, 1]]
    assert sorted(answer["steps"][2]["reads"]) == [[0, 0], [0, 2], [1, 1], [1, 3]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scheme", list(PAIRS))
@pytest.mark.parametrize(
    "n, block", [(1, 1), (2, 2), (3, 3), (8, 8), (31, 33), (100, 100), (1000, 1024)]
)
def test_every_step_is_what_the_arithmetic_says(daemon, scheme, n, block, dtype):
    a, b = vectors(n, dtype)
    answer = ask(daemon, "reduce", a=a, b=b, scheme=scheme, block=block, dtype=dtype).ok()
    expected = steps(a, b, block, dtype, scheme)
    told = answer["steps"]
    assert len(told) == len(expected) + 1  # and the sum is fetched
    for number, (step, (cells, reads, writes)) in enumerate(zip(told, expected)):
        assert (step["block"], step["step"]) == (0, number)
        assert back(step["shared"], dtype) == cells
        assert (sorted(step["reads"]), sorted(step["writes"])) == (reads, writes)
        assert step["active"] == sorted({thread for thread, _ in writes})
        assert step["active_warps"] == sorted({thread // 32 for thread, _ in writes})
        assert step["warps"] == (block + 31) // 32
    assert told[-1]["reads"] == [[0, 0]] and told[-1]["writes"] == []
    value = expected[-1][0][0]
    assert (back(answer["value"], dtype), answer["bits"]) == (value, bits(value, dtype))
    counts = answer["counts"]
    assert (counts["steps"], counts["barriers"]) == (len(expected) - 1, len(expected))
    assert counts["active_threads"] == sum(len(step["active"]) for step in told)
    assert counts["idle_warps"] == sum(step["warps"] - len(step["active_warps"]) for step in told)
    assert counts["bank_conflicts"] == sum(step["bank_conflicts"] for step in told)


def test_pairs_pay_with_bank_conflicts_and_half_empty_warps_where_stride_does_not(daemon):
    a, b = vectors(1024)
    stride, pairs = [
        ask(daemon, "reduce", a=a, b=b, scheme=scheme, block=1024).ok()["counts"]
        for scheme in ("stride", "pairs")
    ]
    assert (stride["steps"], stride["barriers"]) == (pairs["steps"], pairs["barriers"]) == (10, 11)
    assert stride["active_threads"] == pairs["active_threads"] == 1024 + 1023 + 1
    assert stride["bank_conflicts"] == 0 < pairs["bank_conflicts"]
    # 32 warps: 16, 8, 4, 2, 1 of them add, then the first alone; the last fetches the sum.
    assert stride["idle_warps"] == 16 + 24 + 28 + 30 + 31 * 7
    assert pairs["idle_warps"] == 0 + 16 + 24 + 28 + 30 + 31 * 6  # half a warp is a warp


def test_serial_lets_thread_0_add_them_all(daemon):
    a, b = vectors(40)
    answer = ask(daemon, "reduce", a=a, b=b, scheme="serial", block=64).ok()
    loaded, added = answer["steps"]
    assert back(loaded["shared"], "float32") == load(a, b, 64, "float32")[0]
    assert loaded["what"] == "load"
    assert (added["what"], added["active"]) == ("add", [0])
    assert added["reads"] == [[0, cell] for cell in range(40)] and added["writes"] == []
    assert answer["bits"] == bits(serial_sum(a, b, "float32"), "float32")
    assert (answer["counts"]["barriers"], answer["counts"]["steps"]) == (1, 39)


@pytest.mark.parametrize("scheme, atomics", [("blocks", 4), ("shuffle", 4)])
def test_blocks_add_their_sums_by_atomics(daemon, scheme, atomics):
    a, b = [*range(1, 101)], [2] * 100
    answer = ask(daemon, "reduce", a=a, b=b, scheme=scheme, block=32).ok()
    assert (answer["blocks"], answer["value"], answer["order"]) == (4, 2.0 * 5050, "any")
    assert answer["counts"]["atomics"] == atomics
    first = {step["block"]: step["shared"] for step in answer["steps"] if step["step"] == 0}
    products = [2.0 * value for value in range(1, 101)] + [0.0] * 28
    assert first == {block: products[32 * block : 32 * block + 32] for block in range(4)}


def test_the_seed_draws_the_order_of_blocks(daemon):
    a, b = [1] * 256, [1] * 256
    orders = set()
    for seed in range(6):
        told = ask(daemon, "reduce", a=a, b=b, scheme="blocks", block=32, seed=seed).ok()["steps"]
        orders.add(tuple(dict.fromkeys(step["block"] for step in told)))
        again = ask(daemon, "reduce", a=a, b=b, scheme="blocks", block=32, seed=seed).ok()["steps"]
        assert told == again
    assert len(orders) > 1


def test_a_block_is_chosen_when_none_is_named(daemon):
    for n in (1, 2, 3, 100, 1000, 1024):
        assert ask(daemon, "reduce", a=[1] * n, b=[1] * n).ok()["block"] == power_of_two(n)
    assert ask(daemon, "reduce", a=[1] * 1000, b=[1] * 1000, scheme="blocks").ok()["block"] == 256


def test_the_longest_trace_is_whole(daemon):
    n = LIMITS["traced"]
    answer = ask(daemon, "reduce", a=[1] * n, b=[1] * n, scheme="blocks", block=1024).ok()
    assert (answer["value"], answer["is_cut"], answer["blocks"]) == (float(n), False, 4)


def test_numbers_that_are_not_finite_are_shown_as_such(daemon):
    a = ["Infinity", 1, "NaN", "-Infinity"]
    answer = ask(daemon, "reduce", a=a, b=[1, 1, 1, 1]).ok()
    assert answer["steps"][0]["shared"] == ["Infinity", 1.0, "NaN", "-Infinity"]
    assert answer["steps"][1]["shared"] == ["NaN", "-Infinity", "NaN", "-Infinity"]
    assert (answer["value"], answer["exact"]) == ("NaN", "NaN")
    for a in (["Infinity", "-Infinity"], ["NaN", 1]):  # every NaN is the same one
        assert ask(daemon, "reduce", a=a, b=[1, 1]).ok()["bits"] == "0x7fc00000"
    over = ask(daemon, "reduce", a=[3e38, 3e38], b=[1, 1]).ok()
    assert (over["value"], over["bits"]) == ("Infinity", "0x7f800000")
    assert over["exact"] == 2 * narrow(3e38, "float32")


def test_numbers_are_rounded_to_the_type_that_is_named_anywhere(daemon):
    body = '{"a": [0.1], "b": [1], "dtype": "%s"}'
    assert ask(daemon, "reduce", body % "float64").ok()["bits"] == bits(0.1, "float64")
    assert ask(daemon, "reduce", body % "f32").ok()["bits"] == bits(0.1, "float32")
    assert ask(daemon, "reduce", '{"a": [0.1], "b": [1]}').ok()["value"] == 0.1  # its shortest text


# ---- race ----------------------------------------------------------------------------------------


def test_a_race_loses_additions(any_daemon, device):
    answer = ask(any_daemon, "race", n=100_000, runs=3, device=device).ok()
    assert (answer["kernel"], answer["right"], len(answer["runs"])) == ("race", 100_000, 3)
    for run in answer["runs"]:
        assert run["value"] + run["lost"] == 100_000 and run["lost"] > 0
    assert answer["atomic"] == {"kernel": "thread-atomic", "value": 100_000.0, "lost": 0.0}
    assert answer["is_emulated"] == (device == "cpu")
    assert answer["faults"][0]["kind"] == "race" and len(answer["faults"][0]["threads"]) == 2


def test_a_race_of_one_thread_is_right(daemon):
    answer = ask(daemon, "race", n=1, runs=1).ok()
    assert answer["runs"] == [{"value": 1.0, "lost": 0.0}] and answer["faults"] == []


# ---- shift ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [1, 2, 33, 128, 1024])
def test_a_shift_with_both_barriers_is_right(daemon, n, seed):
    values = [value * 0.5 for value in range(n)]
    answer = ask(daemon, "shift", values=values, barriers=2, seed=seed).ok()
    assert answer["expected"] == answer["result"] == values[1:] + values[-1:]
    assert answer["wrong"] == [] and answer["faults"] == []
    assert {read["raced"] for read in answer["reads"]} == {False}
    assert all(read["value"] == read["expected"] for read in answer["reads"])


@pytest.mark.parametrize("barriers", [0, 1])
def test_a_shift_without_a_barrier_races_and_goes_wrong(daemon, barriers):
    wrong = 0
    for seed in range(8):
        answer = ask(daemon, "shift", n=128, barriers=barriers, seed=seed).ok()
        assert answer["expected"] == [*map(float, range(1, 128)), 127.0]
        differs = [
            i
            for i, pair in enumerate(zip(answer["result"], answer["expected"]))
            if pair[0] != pair[1]
        ]
        assert answer["wrong"] == differs
        assert any(read["raced"] for read in answer["reads"])
        assert {fault["kind"] for fault in answer["faults"]} == {"race"}
        assert answer["faults_total"] >= len(answer["faults"]) > 0
        wrong += len(differs)
    assert wrong > 0


def test_the_reads_of_a_shift_say_who_read_what(daemon):
    reads = ask(daemon, "shift", values=[5, 6, 7], barriers=2).ok()["reads"]
    told = [(read["thread"], read["cell"], read["value"]) for read in reads]
    # The neighbour's cell, the last thread's its own; then what each hands out: 6, 7, 7, from the
    # other end.
    neighbours, handed_out = told[::2], told[1::2]
    assert neighbours == [(0, 1, 6.0), (1, 2, 7.0), (2, 2, 7.0)]
    assert handed_out == [(0, 2, 7.0), (1, 1, 7.0), (2, 0, 6.0)]


def test_a_shift_carries_what_is_not_finite(daemon):
    answer = ask(daemon, "shift", values=[1, "NaN", "Infinity", -0.0], barriers=2).ok()
    assert answer["result"] == answer["expected"] == ["NaN", "Infinity", -0.0, -0.0]
    assert math.copysign(1, answer["result"][2]) == -1


def test_a_device_shifts_right_with_both_barriers(any_daemon, device):
    answer = ask(any_daemon, "shift", n=1000, barriers=2, device=device).ok()
    assert answer["wrong"] == [] and answer["device"].startswith(device)
    assert answer["is_emulated"] == (device == "cpu")


# ---- barrier -------------------------------------------------------------------------------------


def test_a_barrier_in_a_branch_stops_the_kernel_and_says_where(daemon):
    answer = ask(daemon, "barrier", n=64, where="branch").ok()
    assert (answer["stopped"], answer["where"], answer["n"]) == (True, "branch", 64)
    assert (answer["waiting"], answer["ended"]) == ([*range(32)], [*range(32, 64)])
    assert answer["faults"][0]["kind"] == "barrier"
    assert answer["report"] == answer["faults"][0]["text"] and "32 wait" in answer["report"]
    assert "value" not in answer


@pytest.mark.parametrize("n", [2, 3, 64, 1000])
def test_a_barrier_on_the_common_path_lets_all_go_on(daemon, n):
    answer = ask(daemon, "barrier", n=n, where="common").ok()
    assert (answer["stopped"], answer["value"], answer["faults"]) == (False, float(n), [])
    assert "report" not in answer


@pytest.mark.every_build
def test_the_lab_goes_on_after_a_stopped_kernel(daemon):
    for _ in range(3):
        assert ask(daemon, "barrier", n=1024).ok()["stopped"]
        assert ask(daemon, "reduce", a=[1] * 1024, b=[1] * 1024).ok()["value"] == 1024.0


# ---- rounding ------------------------------------------------------------------------------------


def ordinal(value, dtype):
    """A number's place among those of its type; both zeros have one."""
    code, mask = ("<i", 0x7FFFFFFF) if dtype == "float32" else ("<q", (1 << 63) - 1)
    whole = struct.unpack(code, struct.pack(code.replace("i", "f").replace("q", "d"), value))[0]
    return whole if whole >= 0 else -(whole & mask)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 5, 100, 1024, 3000])
def test_rounding_tells_every_sum_against_the_exact_one(any_daemon, device, n, dtype):
    a, b = vectors(n, dtype, "rounding")
    answer = ask(any_daemon, "rounding", a=a, b=b, dtype=dtype, orders=3, device=device).ok()
    exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b)), Fraction(0))
    sum_abs = sum(abs(Fraction(x) * Fraction(y)) for x, y in zip(a, b))
    nearest = float(value_of(rounded(exact, dtype)[0], dtype))
    assert back(answer["exact"]["value"], dtype) == nearest
    assert answer["exact"]["bits"] == bits(nearest, dtype)
    assert answer["sum_abs"] == pytest.approx(float(sum_abs), rel=1e-12)
    assert answer["condition"] == pytest.approx(float(sum_abs) / abs(nearest), rel=1e-6)
    assert [row["how"] for row in answer["sums"]] == ["sequential", "tree"] + ["atomic"] * 3
    assert answer["sums"][0]["bits"] == bits(serial_sum(a, b, dtype), dtype)
    if n <= 1024:
        assert answer["sums"][1]["kernel"] == "tree"
        assert answer["sums"][1]["bits"] == bits(tree_sum(a, b, power_of_two(n), dtype), dtype)
    for row in answer["sums"]:
        value = back(row["value"], dtype)
        off = abs(Fraction(value) - exact)
        assert row["error"] == float(off) and off <= Fraction(row["bound"]), row
        assert row["bits"] == bits(value, dtype)
        assert row["ulps"] == abs(ordinal(value, dtype) - ordinal(nearest, dtype)), row
    assert answer["bound"] == max(row["bound"] for row in answer["sums"])
    assert answer["distinct"] == len({row["bits"] for row in answer["sums"]})


def test_orders_of_atomics_differ_in_their_bits(daemon):
    a, b = vectors(1000, "float32", "orders")
    answer = ask(daemon, "rounding", a=a, b=b, orders=16).ok()
    atomics = [row for row in answer["sums"] if row["how"] == "atomic"]
    assert len({row["order"] for row in atomics}) == 16
    assert len({row["bits"] for row in atomics}) > 1


def test_rounding_shows_what_is_not_finite(daemon):
    answer = ask(daemon, "rounding", a=[1, "NaN"], b=[1, 1], orders=1).ok()
    assert answer["exact"]["value"] == "NaN"
    for row in answer["sums"]:
        assert (row["value"], row["ulps"], row["error"]) == ("NaN", None, "NaN")


# ---- measure -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["serial", "tree", "thread-atomic", "two-pass", "grid-atomic"])
def test_a_rung_is_measured_where_it_runs(any_daemon, device, kernel):
    answer = ask(any_daemon, "measure", kernel=kernel, n=1000, device=device).ok()
    assert (answer["kernel"], answer["n"], answer["dtype"]) == (kernel, 1000, "float32")
    assert answer["is_emulated"] == (device == "cpu") and answer["device"].startswith(device)
    assert answer["runs"] >= 1 and 0 < answer["time_us_min"] <= answer["time_us"]
    assert answer["gb_s"] == pytest.approx(8 * 1000 / answer["time_us"] / 1000, rel=1e-9)
    assert answer["max_time_ms"] > 0


@pytest.mark.parametrize("kernel", ["fast", "exact"])
def test_what_dot_uses_is_measured_as_it_is(any_daemon, device, kernel):
    answer = ask(
        any_daemon, "measure", kernel=kernel, n=100_000, dtype="float64", device=device
    ).ok()
    names = {row["id"]: row["name"] for row in any_daemon.get("/v1/devices").ok()["devices"]}
    assert (answer["is_emulated"], answer["device_name"]) == (False, names[answer["device"]])


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, fields, status, name, pointer",
    [
        ("reduce", {"b": [1]}, 422, "bad-value", "/a"),
        ("reduce", {"a": [1]}, 422, "bad-value", "/b"),
        ("reduce", {"a": [], "b": []}, 422, "bad-value", "/a"),
        ("reduce", {"a": [1], "b": [1, 2]}, 422, "length-mismatch", None),
        ("reduce", {"a": 1, "b": [1]}, 422, "bad-value", "/a"),
        ("reduce", {"a": {"0": 1}, "b": [1]}, 422, "bad-value", "/a"),
        ("reduce", {"a": [1, [2]], "b": [1, 2]}, 422, "bad-value", "/a/1"),
        ("reduce", {"a": [1, None], "b": [1, 2]}, 422, "bad-value", "/a/1"),
        ("reduce", {"a": [1, True], "b": [1, 2]}, 422, "bad-value", "/a/1"),
        ("reduce", {"a": [1, 2], "b": [1, "x"]}, 422, "bad-value", "/b/1"),
        ("reduce", {"a": [1, 2], "b": [1, "nan"]}, 422, "bad-value", "/b/1"),
        ("reduce", {"a": [1, 2], "b": [1, 1e39]}, 422, "bad-value", "/b/1"),
        ("reduce", {"a": [1], "b": [1], "scheme": "spiral"}, 422, "bad-value", "/scheme"),
        ("reduce", {"a": [1], "b": [1], "scheme": 1}, 422, "bad-value", "/scheme"),
        ("reduce", {"a": [1], "b": [1], "block": 0}, 422, "bad-value", "/block"),
        ("reduce", {"a": [1], "b": [1], "block": 1025}, 422, "bad-value", "/block"),
        ("reduce", {"a": [1], "b": [1], "block": 1.5}, 422, "bad-value", "/block"),
        ("reduce", {"a": [1], "b": [1], "block": -8}, 422, "bad-value", "/block"),
        ("reduce", {"a": [1], "b": [1], "block": "8"}, 422, "bad-value", "/block"),
        ("reduce", {"a": [1] * 9, "b": [1] * 9, "block": 8}, 422, "bad-value", "/block"),
        ("reduce", {"a": [1] * 1025, "b": [1] * 1025}, 422, "bad-value", "/block"),
        (
            "reduce",
            {"a": [1] * 40, "b": [1] * 40, "block": 40, "scheme": "shuffle"},
            422,
            "bad-value",
            "/block",
        ),
        ("reduce", {"a": [1], "b": [1], "dtype": "int8"}, 422, "unknown-dtype", "/dtype"),
        ("reduce", {"a": [1], "b": [1], "dtype": "float1"}, 422, "unknown-dtype", "/dtype"),
        ("reduce", {"a": [1], "b": [1], "dtype": ">f4"}, 422, "unknown-dtype", "/dtype"),
        ("reduce", {"a": [1], "b": [1], "seed": -1}, 422, "bad-value", "/seed"),
        ("reduce", {"a": [1], "b": [1], "nonesuch": 1}, 400, "bad-option", "/nonesuch"),
        ("reduce", {"a": [1], "b": [1], "device": "cpu"}, 400, "bad-option", "/device"),
        ("reduce", {"a": [1] * 4097, "b": [1]}, 413, "too-large", "/a"),
        ("race", {}, 422, "bad-value", "/n"),
        ("race", {"n": 0}, 422, "bad-value", "/n"),
        ("race", {"n": 1e300}, 422, "bad-value", "/n"),
        ("race", {"n": None}, 422, "bad-value", "/n"),
        ("race", {"n": 1, "runs": 0}, 422, "bad-value", "/runs"),
        ("race", {"n": 1, "runs": 21}, 422, "bad-value", "/runs"),
        ("race", {"n": (1 << 18) + 1}, 413, "too-large", "/n"),
        ("race", {"n": 1, "device": "tpu"}, 422, "bad-value", "/device"),
        ("race", {"n": 1, "device": "cuda:7"}, 503, "no-device", "/device"),
        ("shift", {"n": 8}, 422, "bad-value", "/barriers"),
        ("shift", {"n": 8, "barriers": 3}, 422, "bad-value", "/barriers"),
        ("shift", {"n": 8, "barriers": "2"}, 422, "bad-value", "/barriers"),
        ("shift", {"barriers": 2}, 422, "bad-value", None),
        ("shift", {"n": 1, "values": [1], "barriers": 2}, 400, "bad-option", None),
        ("shift", {"values": [], "barriers": 2}, 422, "bad-value", "/values"),
        ("shift", {"n": 1025, "barriers": 2}, 413, "too-large", "/n"),
        ("shift", {"values": [1] * 1025, "barriers": 2}, 413, "too-large", "/values"),
        ("barrier", {}, 422, "bad-value", "/n"),
        ("barrier", {"n": 1}, 422, "bad-value", "/n"),
        ("barrier", {"n": 1025}, 413, "too-large", "/n"),
        ("barrier", {"n": 8, "where": "nowhere"}, 422, "bad-value", "/where"),
        ("barrier", {"n": 8, "where": None}, 422, "bad-value", "/where"),
        ("rounding", {"a": [1], "b": [1], "orders": 0}, 422, "bad-value", "/orders"),
        ("rounding", {"a": [1], "b": [1], "orders": 33}, 422, "bad-value", "/orders"),
        ("rounding", {"a": [1], "b": []}, 422, "length-mismatch", None),
        ("rounding", {"a": [1] * 65537, "b": [1]}, 413, "too-large", "/a"),
        ("measure", {"n": 8}, 422, "bad-value", "/kernel"),
        ("measure", {"kernel": "tree"}, 422, "bad-value", "/n"),
        ("measure", {"kernel": "nonesuch", "n": 8}, 422, "unknown-kernel", "/kernel"),
        ("measure", {"kernel": "", "n": 8}, 422, "unknown-kernel", "/kernel"),
        ("measure", {"kernel": "tree", "n": 1025}, 422, "unknown-kernel", "/n"),
        ("measure", {"kernel": "two-pass", "n": 65537}, 413, "too-large", "/n"),
        ("measure", {"kernel": "exact", "n": (1 << 24) + 1}, 413, "too-large", "/n"),
        ("measure", {"kernel": "tree", "n": 8, "dtype": "int8"}, 422, "unknown-dtype", "/dtype"),
    ],
)
def test_a_wrong_field_is_named(daemon, call, fields, status, name, pointer):
    assert ask(daemon, call, **fields).problem(status, name).get("pointer") == pointer


@pytest.mark.parametrize(
    "call, fields, limit",
    [
        ("reduce", {"a": [1] * 4097, "b": [1] * 4097}, 4096),
        ("reduce", {"a": [1], "b": [1], "block": 2000}, 1024),
        ("reduce", {"a": [1] * 1025, "b": [1] * 1025}, 1024),
        ("race", {"n": 1 << 30}, 1 << 18),
        ("race", {"n": (1 << 32) + 1}, 1 << 18),
        ("shift", {"n": 4000, "barriers": 0}, 1024),
        ("shift", {"n": (1 << 32) + 1, "barriers": 0}, 1024),
        ("barrier", {"n": 4000}, 1024),
        ("barrier", {"n": (1 << 32) + 2}, 1024),
        ("rounding", {"a": [1] * 65537, "b": [1] * 65537}, 65536),
        ("measure", {"kernel": "serial", "n": 2000}, 1024),
        ("measure", {"kernel": "fast", "n": 1 << 30}, 1 << 24),
    ],
)
def test_a_limit_that_was_passed_is_told(daemon, call, fields, limit):
    assert ask(daemon, call, **fields).json()["limit"] == limit


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "body, status, name",
    [
        ("", 400, "bad-syntax"),
        ("nonsense", 400, "bad-syntax"),
        ("[1]", 400, "bad-syntax"),
        ('{"n": 1', 400, "bad-syntax"),
        ('{"n": 1} x', 400, "bad-syntax"),
        ('{"n": NaN}', 400, "bad-syntax"),
        ('{"seed": 1, "seed": 1}', 400, "bad-option"),
        ('{"seed": 1e999}', 422, "bad-value"),
        ('{"seed": "\\u0000"}', 422, "bad-value"),
        ('{"seed": 1, "\\u0000": 1}', 422, "bad-value"),
        (b'{"seed": "\xff"}', 400, "bad-syntax"),
        ("[" * 10000, 400, "bad-syntax"),
    ],
)
def test_a_body_that_is_no_object_is_refused(daemon, call, body, status, name):
    ask(daemon, call, body).problem(status, name)


def test_the_place_of_a_syntax_error_is_told(daemon):
    assert ask(daemon, "reduce", '{"a": [1, 2,]}').problem(400, "bad-syntax")["offset"] == 13


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_is_right_is_answered_by_any_name_of_json(daemon, call):
    body = json.dumps(GOOD[call])
    for content_type in ("application/json", "text/json", "application/x-www-form-urlencoded"):
        headers = {"Content-Type": content_type}
        assert daemon.call("POST", f"/v1/lab/{call}", body, headers).status == 200


@pytest.mark.parametrize("call", CALLS)
def test_other_types_methods_and_parameters_are_refused(daemon, call):
    path, body = f"/v1/lab/{call}", json.dumps(GOOD[call])
    for content_type in ("text/plain", "application/octet-stream"):
        answer = daemon.call("POST", path, body, {"Content-Type": content_type})
        answer.problem(415, "unsupported-media-type")
    daemon.call("POST", path, body, {"Accept": "application/octet-stream"}).problem(
        406, "not-acceptable"
    )
    daemon.call("POST", path, body, {"Content-Encoding": "gzip"}).problem(
        415, "unsupported-media-type"
    )
    daemon.call("POST", f"{path}?n=1", body).problem(400, "bad-option")
    answer = daemon.get(path)
    answer.problem(405, "method-not-allowed")
    assert answer.headers["Allow"] == "POST"


def test_other_calls_are_404(daemon):
    for path in ("/v1/lab", "/v1/lab/", "/v1/lab/nonesuch", "/v1/lab/reduce/"):
        daemon.call("POST", path, "{}").problem(404, "not-found")


def test_a_body_may_come_in_any_pieces(daemon):
    body = json.dumps({"a": [*range(200)], "b": [1] * 200}).encode()
    pieces = [body[i : i + 7] for i in range(0, len(body), 7)]
    answer = daemon.call("POST", "/v1/lab/reduce", iter(pieces), encode_chunked=True)
    assert answer.ok()["value"] == 199 * 100.0


def test_a_body_over_the_limit_is_refused_before_it_is_read(daemon):
    with daemon.wire() as wire:
        head = post("/v1/lab/reduce", "", "Expect: 100-continue").replace(
            b"Content-Length: 0", b"Content-Length: %d" % (BODY_MOST + 1)
        )
        wire.send(head)
        assert wire.answer().problem(413, "too-large")["limit"] == BODY_MOST
    blanks = b" " * (BODY_MOST + 1)
    chunked = daemon.call("POST", "/v1/lab/reduce", iter([blanks]), encode_chunked=True)
    assert chunked.problem(413, "too-large")["limit"] == BODY_MOST
    assert daemon.get("/v1/limits").ok()["fixed"]["lab_body_bytes"] == BODY_MOST


def test_more_values_than_any_call_takes_are_refused_unparsed(daemon):
    ask(daemon, "rounding", "{" + "," * 200_000 + "}").problem(413, "too-large")


def test_the_longest_vectors_fit_a_body(daemon):
    vector = [0.12345678901234567] * LIMITS["rounding"]
    answer = ask(daemon, "rounding", a=vector, b=vector, dtype="float64", orders=1).ok()
    assert answer["n"] == LIMITS["rounding"]


def test_limits_of_the_lab_are_listed(daemon):
    fixed = daemon.get("/v1/limits").ok()["fixed"]
    told = {name: fixed[f"lab_{name}"] for name in ("traced", "rounding", "block")}
    assert told == {name: LIMITS[name] for name in told}
    assert fixed["lab_race_emulated"] == LIMITS["race"]
    assert fixed["lab_measure_emulated"] == LIMITS["measure"]
