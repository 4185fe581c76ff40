"""Exact answers: the table of known cases, and rationals, in JSON and binary, on every device."""

import json
import random
from fractions import Fraction

import pytest

from cases import numbers
from client import ROOT, Daemon, post
from rationals import COMPLEX, FLOATS, INTEGERS, encode, half_unit, rounded, size_of, value_of

CASES = [json.loads(line) for line in (ROOT / "tests/cases/dot.jsonl").read_text().splitlines()]
RAW = {"Accept": "application/octet-stream"}
OTHERS = 500  # pairs beside the one that is looked at


@pytest.fixture(scope="module")
def exact_daemon(binary, tmp_path_factory):
    """One with every device that opens."""
    daemon = Daemon(binary, tmp_path_factory.mktemp("exact") / "stderr")
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def device(request, exact_daemon):
    """Each kind of device that there is; the others are skipped, by name."""
    names = [device["id"] for device in exact_daemon.get("/v1/devices").ok()["devices"]]
    if not any(name.startswith(request.param) for name in names):
        pytest.skip(f"no {request.param} here")
    return request.param


@pytest.fixture
def daemon(exact_daemon):
    yield exact_daemon
    exact_daemon.check()


# ---- the table of known cases --------------------------------------------------------------------


def expand(operand):
    """The elements of an operand, as the table has it."""
    if isinstance(operand, list):
        return operand
    if "repeat" in operand:
        return operand["repeat"] * operand["times"]
    start, step, count = operand["ramp"]
    return [start + step * i for i in range(count)]


def array_text(operand):
    """The same as JSON; for millions of elements quicker than json.dumps."""
    if isinstance(operand, dict) and "repeat" in operand:
        element = ",".join(json.dumps(value) for value in operand["repeat"])
        return "[" + ",".join([element] * operand["times"]) + "]"
    return json.dumps(expand(operand))


def array_bytes(operand, dtype):
    if isinstance(operand, dict) and "repeat" in operand:
        return encode(operand["repeat"], dtype) * operand["times"]
    return encode(expand(operand), dtype)


def pair_text(request):
    return f'"a":{array_text(request["a"])},"b":{array_text(request["b"])}'


def check_expected(answer, expect, index=None):
    """What the table expects of the answer, or of one result of a list."""

    def of(field):
        return answer.get(field) if index is None or answer.get(field) is None else answer[field][index]

    assert of("result") == expect["result"]
    assert type(of("result")) is type(expect["result"])  # 60902003240 and not 60902003240.0
    assert "bits" not in expect or of("bits") == expect["bits"]
    assert of("result_text") == expect.get("result_text")
    assert answer["flags"] == expect["flags"]
    assert (answer["accuracy"], answer["kernel"]) == ("exact", "exact")


@pytest.mark.every_build
@pytest.mark.parametrize("case", numbers(*CASES), ids=lambda case: case["name"])
def test_known_case_in_json(daemon, device, case):
    request = case["request"]
    body = f'{{{pair_text(request)},"dtype":"{request["dtype"]}","device":"{device}"}}'
    answer = daemon.dot(body).ok()
    assert answer["device"].startswith(device)
    check_expected(answer, case["expect"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_known_case_in_binary(daemon, device, case):
    request, expect = case["request"], case["expect"]
    dtype = request["dtype"]
    body = array_bytes(request["a"], dtype) + array_bytes(request["b"], dtype)
    query = f"dtype={dtype}&device={device}"
    check_expected(daemon.raw(body, query).ok(), expect)
    answer = daemon.raw(body, query, RAW)
    if dtype in INTEGERS and expect["result"] >= 2**63:
        assert "json" in answer.problem(422, "bad-value")["detail"]
        return
    assert answer.status == 200
    assert answer.headers["Dotd-Kernel"] == "exact"
    assert answer.headers.get("Dotd-Flags", "") == ",".join(expect["flags"])
    if dtype in INTEGERS:
        assert int.from_bytes(answer.body, "little", signed=True) == expect["result"]
    elif "bits" in expect:
        assert answer.body[::-1].hex() == expect["bits"][2:]
    else:
        assert answer.body == encode([expect["result_text"]], "float64")


def other_pair(generator, dtype):
    n = generator.randrange(40)
    if dtype in INTEGERS:
        values = [generator.randrange(0, 128) for _ in range(2 * n)]
    else:
        values = [generator.randrange(-99, 99) / 8 for _ in range(2 * n)]
    return values[:n], values[n:]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_known_case_among_500_others(daemon, device, case):
    request, expect = case["request"], case["expect"]
    generator = random.Random(case["name"])
    others = [other_pair(generator, request["dtype"]) for _ in range(OTHERS)]
    index = generator.randrange(OTHERS)
    pairs = [json.dumps({"a": a, "b": b}) for a, b in others]
    pairs.insert(index, "{" + pair_text(request) + "}")
    answer = daemon.dot(
        f'{{"device":"{device}","dtype":"{request["dtype"]}","pairs":[{",".join(pairs)}]}}'
    ).ok()
    check_expected(answer, expect, index)
    sums = [sum(x * y for x, y in zip(a, b)) for a, b in others]  # exact as floats
    assert answer["result"][:index] + answer["result"][index + 1 :] == sums


# ---- rationals -----------------------------------------------------------------------------------


def random_floats(generator, dtype, kind, n):
    """Fractions that dtype holds: bit patterns of any kind, or near each other so that sums round."""
    precision, lowest, top, size = FLOATS[dtype]
    values = []
    while len(values) < n:
        if kind == "any":
            value = value_of(generator.getrandbits(size), dtype)
        elif kind == "tiny":
            value = value_of(generator.getrandbits(precision + 1), dtype)
        else:
            value = generator.randrange(-(2**precision), 2**precision)
            value *= Fraction(2) ** generator.randrange(max(-precision - 8, lowest), 1 - precision)
        if not isinstance(value, str):
            values.append(value)
    return values


def hard_pair(generator, dtype, kind, n):
    """Two vectors, half of whose products the other half cancels but for a little."""
    a, b = (random_floats(generator, dtype, kind, n) for _ in range(2))
    half = n // 2
    a[half : 2 * half] = a[:half]
    b[half : 2 * half] = [-value for value in b[:half]]
    if half > 0 and generator.random() < 0.5:
        a[0] = random_floats(generator, dtype, kind, 1)[0]
    order = generator.sample(range(n), n)
    return [a[i] for i in order], [b[i] for i in order]


def check_sum(answer, exact, result_dtype):
    bits, flags = rounded(exact, result_dtype)
    assert answer["bits"] == f"0x{bits:0{FLOATS[result_dtype][3] // 4}x}"
    assert answer["flags"] == flags
    if "overflow" in flags:
        assert (answer["result"], answer["error_bound"]) == (None, None)
        return
    printed = Fraction(repr(answer["result"]))
    value = value_of(bits, result_dtype)
    assert printed == value == 0 or rounded(printed, result_dtype)[0] == bits
    bound = Fraction(answer["error_bound"])
    assert bound >= abs(value - exact)
    if not flags:
        assert bound == 0
    elif half_unit(bits, result_dtype) >= Fraction(2) ** -1074:
        assert bound <= half_unit(bits, result_dtype)


@pytest.mark.parametrize("kind", ["near", "any", "tiny"])
@pytest.mark.parametrize("result_dtype", FLOATS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_are_rounded_once_to_any_type(daemon, device, dtype, result_dtype, kind):
    generator = random.Random(f"{dtype} {result_dtype} {kind}")
    for n in (0, 1, 2, 3, 17, 64, 255, 300):
        a, b = hard_pair(generator, dtype, kind, n)
        body = encode(a, dtype) + encode(b, dtype)
        query = f"dtype={dtype}&result_dtype={result_dtype}&device={device}"
        exact = sum((x * y for x, y in zip(a, b)), Fraction(0))
        check_sum(daemon.raw(body, query).ok(), exact, result_dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_order_and_padding_change_no_bit(daemon, device, dtype):
    generator = random.Random(dtype)
    a, b = hard_pair(generator, dtype, "any", 200)
    seen = set()
    for padding in (*range(71), *range(255, 261)):
        order = generator.sample(range(200), 200)
        zeros = encode([0.0, -0.0] * 130, dtype)[: padding * size_of(dtype)]
        body = b"".join(encode([x[i] for i in order], dtype) + zeros for x in (a, b))
        answer = daemon.raw(body, f"dtype={dtype}&device={device}&result_dtype=float32").ok()
        seen.add((answer["bits"], *answer["flags"]))
    assert len(seen) == 1


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("conjugate", [False, True])
def test_complex_parts_are_rounded_once_each(daemon, device, dtype, conjugate):
    part = COMPLEX[dtype]
    generator = random.Random(f"{dtype} {conjugate}")
    for n in (0, 1, 5, 130):
        x = hard_pair(generator, part, "any", 2 * n)
        a, b = ([(v[2 * i], v[2 * i + 1]) for i in range(n)] for v in x)
        sign = -1 if conjugate else 1
        real = sum((p * r - sign * q * s for (p, q), (r, s) in zip(a, b)), Fraction(0))
        imaginary = sum((p * s + sign * q * r for (p, q), (r, s) in zip(a, b)), Fraction(0))
        query = f"dtype={dtype}&device={device}&conjugate={str(conjugate).lower()}"
        for result_dtype in COMPLEX:
            body = encode(a, dtype) + encode(b, dtype)
            answer = daemon.raw(body, f"{query}&result_dtype={result_dtype}").ok()
            parts = [rounded(exact, COMPLEX[result_dtype]) for exact in (real, imaginary)]
            digits = FLOATS[COMPLEX[result_dtype]][3] // 4
            assert answer["bits"] == [f"0x{bits:0{digits}x}" for bits, _ in parts]
            assert answer["flags"] == sorted({flag for _, flags in parts for flag in flags})


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_exact_however_large(daemon, device, dtype):
    generator = random.Random(dtype)
    bits = 8 * size_of(dtype)
    low, high = (0, 2**bits - 1) if dtype == "uint8" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for n in (0, 1, 7, 1000):
        for edge in (False, True):
            draw = (lambda: generator.choice((low, high))) if edge else (lambda: generator.randint(low, high))
            a, b = ([draw() for _ in range(n)] for _ in range(2))
            exact = sum(x * y for x, y in zip(a, b))
            answer = daemon.dot({"a": a, "b": b, "dtype": dtype, "device": device}).ok()
            assert (answer["result"], answer["error_bound"], answer["flags"]) == (exact, 0, [])
            assert answer["result_dtype"] == "int64"
            assert answer.get("result_text") == (str(exact) if abs(exact) > 2**53 else None)
            width = 64 if -(2**63) <= exact < 2**63 else 192
            assert answer["bits"] == f"0x{exact % 2**width:0{width // 4}x}"
            query = f"dtype={dtype}&device={device}"
            for result_dtype in FLOATS:
                body = encode(a, dtype) + encode(b, dtype)
                answer = daemon.raw(body, f"{query}&result_dtype={result_dtype}").ok()
                check_sum(answer, Fraction(exact), result_dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_fast_sums_stay_within_their_bound(daemon, device, dtype):
    generator = random.Random(dtype)
    part = COMPLEX.get(dtype, dtype)
    for kind in ("near", "any", "tiny"):
        a, b = hard_pair(generator, part, kind, 600)
        body = encode(a, part) + encode(b, part)
        answer = daemon.raw(body, f"dtype={dtype}&device={device}&accuracy=fast").ok()
        assert answer["accuracy"] == "fast" and answer["kernel"] != "exact"
        if dtype in COMPLEX:
            pairs = list(zip(a[::2], a[1::2], b[::2], b[1::2]))
            exact = [sum(p * r - q * s for p, q, r, s in pairs), sum(p * s + q * r for p, q, r, s in pairs)]
            got = list(zip(answer["result"], answer["error_bound"], exact))
        else:
            exact = sum(x * y for x, y in zip(a, b))
            got = [(answer["result"], answer["error_bound"], exact)]
        for result, bound, want in got:
            assert bound is None or abs(Fraction(result) - want) <= Fraction(bound)


def test_fast_integers_are_exact(daemon, device):
    request = {"a": [2**62, 1], "b": [2**62, 1], "dtype": "int64", "accuracy": "fast", "device": device}
    answer = daemon.dot(request).ok()
    assert (answer["result"], answer["error_bound"]) == (2**124 + 1, 0)
    assert (answer["accuracy"], answer["kernel"]) == ("fast", "exact")


# ---- what goes with an exact answer --------------------------------------------------------------


def test_exact_is_the_default_unless_the_operator_says_fast(start_daemon):
    request = {"a": [0.1, 3], "b": [0.1, 5]}
    daemon = start_daemon(accuracy="fast", cuda="off")
    assert daemon.dot(request).ok()["accuracy"] == "fast"
    assert daemon.dot(request | {"accuracy": "exact"}).ok()["kernel"] == "exact"
    daemon = start_daemon(cuda="off")
    assert daemon.dot(request).ok()["accuracy"] == "exact"
    assert daemon.dot(request | {"accuracy": "fast"}).ok()["kernel"] != "exact"


def test_a_kernel_is_named_instead_of_an_accuracy(daemon):
    kernel = daemon.get("/v1/devices").ok()["devices"][0]["kernel"]
    request = {"a": [1, 2], "b": [3, 4], "kernel": kernel, "device": "cpu"}
    answer = daemon.dot(request).ok()
    assert (answer["kernel"], answer["accuracy"]) == (kernel, "fast")
    problem = daemon.dot(request | {"accuracy": "exact"}).problem(400, "bad-option")
    assert problem["detail"].startswith(f"kernel {kernel} and accuracy exact contradict each other")
    assert daemon.dot(request | {"accuracy": "fast"}).ok()["kernel"] == kernel
    daemon.dot(request | {"dtype": "int8"}).problem(422, "unknown-kernel")


@pytest.mark.parametrize("dtype", ["float64", "int8", "complex64"])
def test_the_kernel_exact_means_the_exact_sum(start_daemon, dtype):
    daemon = start_daemon(accuracy="fast", cuda="off")
    one = [[1, 0]] if dtype in COMPLEX else [1]
    request = {"a": one, "b": one, "dtype": dtype, "kernel": "exact"}
    for more in ({}, {"accuracy": "exact"}):
        answer = daemon.dot(request | more).ok()
        assert (answer["kernel"], answer["accuracy"]) == ("exact", "exact")
    daemon.dot(request | {"accuracy": "fast"}).problem(400, "bad-option")


def test_a_fast_sum_below_the_normal_numbers_underflows(daemon, device):
    request = {"a": [1e-200, 1e-200], "b": [3e-111, 3e-112], "accuracy": "fast", "device": device}
    answer = daemon.dot(request).ok()
    assert 0 < answer["result"] < 2.2250738585072014e-308
    assert answer["flags"] == ["inexact", "underflow"]


def test_diagnostics_tell_how_hard_the_sum_is(daemon, device):
    request = {"a": [1e16, 1, -1e16], "b": [1, 1, 1], "diagnostics": True, "device": device}
    answer = daemon.dot(request).ok()
    assert answer["result"] == 1.0
    assert answer["sum_abs"] == pytest.approx(2e16, rel=1e-14)
    assert answer["condition"] == answer["sum_abs"]
    assert "sum_abs" not in daemon.dot({"a": [1], "b": [1], "device": device}).ok()


def test_complex_elements_are_pairs_in_and_out(daemon, device):
    request = {"a": [[1, 2], [0, 1]], "b": [[3, -4], [0, 1]], "dtype": "complex64", "device": device}
    answer = daemon.dot(request).ok()
    assert (answer["result"], answer["result_dtype"]) == ([10.0, 2.0], "complex128")
    assert answer["bits"] == ["0x4024000000000000", "0x4000000000000000"]
    conjugated = daemon.dot(request | {"conjugate": True}).ok()
    assert (conjugated["result"], conjugated["error_bound"]) == ([-4.0, -10.0], [0.0, 0.0])
    rows = daemon.dot({"a": [[[1, 1]], [[2, "Infinity"]]], "b": [[1, 0]], "dtype": "c128", "device": device})
    assert rows.ok()["result"] == [[1.0, 1.0], [None, None]]
    assert rows.ok()["result_text"] == [[None, None], ["NaN", "Infinity"]]


@pytest.mark.parametrize("dtype, result_dtype", [
    ("float32", "int64"), ("float32", "complex64"), ("complex64", "float32"), ("int8", "int8"),
    ("int8", "complex64"), ("float64", "uint8"),
])
def test_results_of_another_kind_are_refused(daemon, dtype, result_dtype):
    pair = [[1, 2]] if dtype in COMPLEX else [1]
    request = {"a": pair, "b": pair, "dtype": dtype, "result_dtype": result_dtype}
    problem = daemon.dot(request).problem(422, "bad-value")
    assert problem["pointer"] == "/result_dtype"
    assert dtype in problem["detail"] and result_dtype in problem["detail"]


@pytest.mark.parametrize("body, pointer", [
    ('{"dtype":"int8","a":[1,128],"b":[1,1]}', "/a/1"),
    ('{"a":[1,128],"b":[1,1],"dtype":"int8"}', "/a/1"),
    ('{"dtype":"int64","a":[1.5],"b":[1]}', "/a/0"),
    ('{"a":[1],"b":[9223372036854775808],"dtype":"int64"}', "/b/0"),
    ('{"dtype":"uint8","a":[-1],"b":[1]}', "/a/0"),
    ('{"dtype":"int32","a":[NaN],"b":[1]}', "/a/0"),
    ('{"dtype":"float16","a":[65520],"b":[1]}', "/a/0"),
    ('{"dtype":"complex64","a":[1,2],"b":[[1,2]]}', "/a/0"),
    ('{"a":[[1,2],[3,4]],"b":[1,2],"dtype":"complex64"}', "/b/0"),
])
def test_numbers_that_a_type_does_not_hold_are_named(daemon, body, pointer):
    assert daemon.dot(body).problem(422, "bad-value")["pointer"] == pointer


def test_query_strings_take_every_real_type(daemon):
    for dtype in (*FLOATS, *INTEGERS):
        assert daemon.get(f"/v1/dot?a=1,2,3&b=4,5,6&dtype={dtype}").ok()["result"] == 32
    daemon.get("/v1/dot?a=1&b=1&dtype=complex64").problem(422, "unsupported")


@pytest.mark.parametrize("dtype, code", [
    ("float16", "f2"), ("int32", "i4"), ("int64", "i8"), ("complex64", "c8"), ("complex128", "c16"),
])
def test_big_endian_bodies_give_the_same_bits(daemon, dtype, code):
    values = [(1, -2), (3, 4)] if dtype in COMPLEX else [1, 2, 3, 100]
    little = encode(values, dtype)
    size = size_of(COMPLEX.get(dtype, dtype))
    big = b"".join(little[i : i + size][::-1] for i in range(0, len(little), size))
    want = daemon.raw(little, f"dtype=%3C{code}").ok()
    assert daemon.raw(big, f"dtype=%3E{code}").ok()["bits"] == want["bits"]


# ---- no thread flushes subnormals ----------------------------------------------------------------


@pytest.mark.every_build
def test_subnormals_count_on_every_thread_after_ten_thousand_requests(start_daemon):
    """A thread that set flush-to-zero would lose the smallest numbers; each HTTP thread and each
    device's worker is asked again after much other work."""
    daemon = start_daemon(http_threads=3, inline_terms=4)
    wires = [daemon.wire() for _ in range(12)]  # new connections go to the least busy thread
    ordinary = post("/v1/dot", b'{"a":[1e-300,2],"b":[1e-10,3]}')
    for _ in range(10_000 // len(wires) // 20 + 1):
        for wire in wires:
            wire.send(ordinary * 20)
        for wire in wires:
            for _ in range(20):
                assert wire.answer().ok()["result"] == 6.0
    tiny = json.dumps({"a": [5e-324] * 2, "b": [1, 2]}).encode()
    long = json.dumps({"a": [5e-324] * 6, "b": [1] * 6}).encode()  # beyond inline_terms: queued
    for wire in wires:
        for body, count in ((tiny, 3), (long, 6)):
            for accuracy in ("exact", "fast"):
                wire.send(post(f"/v1/dot?accuracy={accuracy}", body))
                assert wire.answer().ok()["bits"] == f"0x{count:016x}"
    for wire in wires:
        wire.close()
