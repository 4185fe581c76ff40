"""The Python client's numbers: every type and kind of operand against rationals."""

import array
import ctypes
import math
import random
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy
import pytest

from client import PROGRAM_S, ROOT
from dotd_client import Client, Problem
from rationals import COMPLEX, FLOATS, INTEGERS, encode, rounded, size_of, value_of

CODES = {"float32": "f", "float64": "d", "int8": "b", "uint8": "B", "int32": "i", "int64": "q"}
DTYPES = [*FLOATS, *INTEGERS, *COMPLEX]


@pytest.fixture(params=["with NumPy", "without NumPy"])
def client(request, url, monkeypatch):
    """The client sees NumPy where the program has imported it; without, it is as if nobody had."""
    if request.param == "without NumPy":
        monkeypatch.setitem(sys.modules, "numpy", None)
    with Client(url) as client:
        yield client


@pytest.fixture
def plain_client(url):
    with Client(url) as client:
        yield client


def random_values(dtype, count, seed):
    """Numbers that the type holds: of any exponent, but such that no product overflows."""
    draw = random.Random(seed)
    if dtype in INTEGERS:
        bits = 8 * size_of(dtype)
        low = 0 if dtype == "uint8" else -(1 << (bits - 1))
        return [draw.randrange(low, low + (1 << bits)) for _ in range(count)]
    part = COMPLEX.get(dtype, dtype)
    precision, lowest, top, _ = FLOATS[part]

    def number():
        power = draw.randrange(lowest // 2, top // 2 - precision)
        bits, _ = rounded(
            Fraction(draw.randrange(-(1 << precision), 1 << precision)) * Fraction(2) ** power, part
        )
        return value_of(bits, part)

    if dtype in COMPLEX:
        return [(number(), number()) for _ in range(count)]
    return [number() for _ in range(count)]


def pythons(values, dtype):
    """The same as a list of Python's own numbers."""
    if dtype in INTEGERS:
        return values
    if dtype in COMPLEX:
        return [complex(float(re), float(im)) for re, im in values]
    return [float(value) for value in values]


def of_form(form, values, dtype):
    raw = encode(values, dtype)
    if form == "list":
        return pythons(values, dtype)
    if form == "tuple":
        return tuple(pythons(values, dtype))
    if form == "bytes":
        return raw
    if form == "array":
        return array.array(CODES[dtype], raw)
    if form == "words":
        return array.array("H", raw)
    return numpy.frombuffer(raw, "uint16" if dtype == "bfloat16" else dtype)


def exact_dot(a, b, dtype):
    """The exact sum; of complex numbers its two parts."""
    if dtype not in COMPLEX:
        return [sum((Fraction(x) * Fraction(y) for x, y in zip(a, b)), Fraction(0))]
    re = sum((x[0] * y[0] - x[1] * y[1] for x, y in zip(a, b)), Fraction(0))
    return [re, sum((x[0] * y[1] + x[1] * y[0] for x, y in zip(a, b)), Fraction(0))]


def expected_of(exact, dtype):
    """(value, bits) of a result of the type's own choosing."""
    if dtype in INTEGERS:
        whole = int(exact[0])
        return whole, whole % (1 << (64 if -(2**63) <= whole < 2**63 else 192))
    bits = [rounded(part, "float64")[0] for part in exact]
    values = [float(value_of(word, "float64")) for word in bits]
    return (complex(*values), tuple(bits)) if dtype in COMPLEX else (values[0], bits[0])


FORMS = [
    (dtype, form)
    for dtype in DTYPES
    for form in ("list", "tuple", "bytes", "array", "words")
    if (form != "array" or dtype in CODES) and (form != "words" or size_of(dtype) == 2)
]


@pytest.mark.every_build
@pytest.mark.parametrize("dtype, form", FORMS)
def test_every_type_in_every_form_is_exact(client, dtype, form):
    a, b = (random_values(dtype, 37, f"{dtype} {side}") for side in "ab")
    left, right = of_form(form, a, dtype), of_form(form, b, dtype)
    result = client.dot(left, right, dtype=dtype)
    value, bits = expected_of(exact_dot(a, b, dtype), dtype)
    assert (result.value, result.bits, type(result.value)) == (value, bits, type(value))
    assert result.shape == () and result.device == "cpu" and result.kernel == "exact"
    assert ("inexact" in result.flags) == (result.error_bound > 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_tells_its_type_itself(plain_client, dtype):
    a, b = (random_values(dtype, 37, f"{dtype} {side}") for side in "ab")
    left, right = of_form("numpy", a, dtype), of_form("numpy", b, dtype)
    said = {"dtype": dtype} if dtype == "bfloat16" else {}  # NumPy has none of its own
    value, bits = expected_of(exact_dot(a, b, dtype), dtype)
    for operands in ((left, right), (memoryview(left), right)):
        result = plain_client.dot(*operands, **said)
        assert (result.value, result.bits) == (value, bits)


def test_a_list_is_taken_as_the_other_operands_type(client):
    assert client.dot(array.array("f", [1]), [0.1]).value == float(numpy.float32(0.1))
    assert client.dot([1, 2], array.array("b", [3, 4])).value == 11


def test_bfloat16_of_ml_dtypes_goes_in_and_comes_out(plain_client):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = numpy.array([[1.5, -2, 3], [0, 1, 2]], ml_dtypes.bfloat16)
    b = numpy.array([4, 5, 0.25], ml_dtypes.bfloat16)
    result = plain_client.dot(a, b, result_dtype=ml_dtypes.bfloat16)
    assert result.value.dtype == ml_dtypes.bfloat16
    assert result.value.astype(float).tolist() == [-3.25, 5.5]


@pytest.mark.parametrize("result_dtype", ["float16", "bfloat16", "float32", "float64"])
def test_results_of_every_type_are_exactly_their_bits(client, result_dtype):
    result = client.dot([[1.0], [1e-7]], [0.1], result_dtype=result_dtype)
    for value, bits, product in zip(result.value, result.bits, (0.1, 1e-7 * 0.1)):
        exact = Fraction(1.0 if product == 0.1 else 1e-7) * Fraction(0.1)
        assert bits == rounded(exact, result_dtype)[0]
        assert value == float(value_of(bits, result_dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_batches_of_arrays_are_arrays_of_the_result_type(plain_client, dtype):
    a = numpy.arange(6, dtype="float32" if dtype != "complex64" else "complex64").reshape(2, 3)
    result = plain_client.dot(a, a[1].copy(), result_dtype=dtype)
    expected = "float32" if dtype == "bfloat16" and "ml_dtypes" not in sys.modules else dtype
    assert result.value.dtype.name == expected
    assert result.value.tolist() == [14, 50] and result.shape == (2,)


SHAPES = [
    ((3, 5), (5,)),
    ((5,), (3, 5)),
    ((4, 1, 5), (3, 5)),
    ((2, 1, 3, 5), (2, 4, 1, 5)),
    ((0, 5), (5,)),
    ((3, 0), (3, 0)),
    ((1, 5), (1, 5)),
]


@pytest.mark.parametrize("a_shape, b_shape", SHAPES)
def test_shapes_broadcast_as_in_numpy(client, a_shape, b_shape):
    a = numpy.arange(math.prod(a_shape), dtype="f8").reshape(a_shape) - 7
    b = numpy.arange(math.prod(b_shape), dtype="f8").reshape(b_shape) + 3
    expected = (a * b).sum(-1)
    if 0 not in a_shape[:-1]:  # which no list can say
        from_lists = client.dot(a.tolist(), b.tolist(), dtype="float64")
        assert from_lists.value == expected.tolist() and from_lists.shape == expected.shape
    if sys.modules["numpy"] is not None:
        value = client.dot(a, b).value
        assert value.shape == expected.shape and (value == expected).all()


@pytest.mark.parametrize("a_shape, b_shape", [((5,), (3,)), ((2, 3), (2, 4)), ((2, 3), (4, 3))])
def test_shapes_that_do_not_match_are_the_services_to_refuse(client, a_shape, b_shape):
    a, b = numpy.ones(a_shape), numpy.ones(b_shape)
    with pytest.raises(Problem, match="length-mismatch"):
        client.dot(a.tolist(), b.tolist())


@pytest.mark.parametrize("code", [">f2", ">f4", ">f8", ">i4", ">i8", ">c8", ">c16", "<f4"])
def test_either_byte_order_is_sent_as_it_lies(plain_client, code):
    a = numpy.array([[1, 2, 3], [4, 5, 6]], code)
    native = numpy.array([3, 2, 1], numpy.dtype(code).newbyteorder("="))
    for left, right in ((a, a), (a, native), (native, a)):
        expected = (left * right).sum(-1)
        assert plain_client.dot(left, right).value.tolist() == expected.tolist()
    swapped = plain_client.dot_pairs([(a[0], native), (a[1], native)])
    assert swapped.value.tolist() == [10, 28]


def test_arrays_alike_but_for_their_order_are_sent_right(plain_client):
    c = numpy.arange(9, dtype="f4").reshape(3, 3)
    for dtype in ("f4", "c8", ">f4", "f2"):
        for array_of in (c, c + 1, c.T, c.T + 1, c[::-1], c):
            a = array_of.astype(dtype, order="K", copy=False)
            assert plain_client.dot(a, c[0].astype(dtype)).value.tolist() == (
                (array_of * c[0]).sum(-1).tolist()
            )


def test_arrays_that_are_not_contiguous_are_sent_right(plain_client):
    a = numpy.arange(24, dtype="f4").reshape(4, 6)
    for view in (a[::2], a[:, ::3], a[::-1], a.T):
        expected = (view * view).sum(-1).tolist()
        assert plain_client.dot(view, view).value.tolist() == expected
        assert plain_client.dot(memoryview(view), memoryview(view)).value == expected


def test_buffers_of_ctypes_are_operands(client):
    a = (ctypes.c_double * 3)(1, 2, 3)
    assert client.dot(a, [4, 5, 6]).value == 32.0


def test_a_number_of_numpys_in_a_list_is_a_number(client):
    assert client.dot([numpy.float32(0.5), numpy.int64(2)], [2, numpy.float64(3)]).value == 7.0
    rows = [numpy.array([1, 2]), numpy.array([3, 4])]
    assert client.dot(rows, [1, 1]).value == [3, 7]


def test_integers_beyond_64_bits_have_all_their_digits(client):
    big = 2**63 - 1
    result = client.dot([big, 1], [big, 2])
    assert (result.value, result.bits) == (big * big + 2, big * big + 2)
    result = client.dot([big], [-big])
    assert (result.value, result.bits) == (-big * big, -big * big % 2**192)
    batch = client.dot([[big], [1]], [[big], [-1]])
    assert batch.value == [big * big, -1] and batch.bits == [big * big, 2**64 - 1]
    if sys.modules["numpy"] is not None:
        value = client.dot(numpy.array([[big], [1]]), [big]).value
        assert value.dtype == object and value.tolist() == [big * big, big]


def test_lists_of_ints_are_int64_and_one_float_makes_them_float64(client):
    assert type(client.dot([1, 2], [3, 4]).value) is int
    assert type(client.dot([1, 2], [3, 4.0]).value) is float
    assert type(client.dot([1, 2j], [3, 4.0]).value) is complex
    assert client.dot([], []).value == 0.0
    assert client.dot([True, False], [5, 6]).value == 5


@pytest.mark.parametrize(
    "a, dtype, pointer",
    [
        ([1, 300], "int8", "/a/1"),
        ([1.5], "int64", "/a/0"),
        ([[1, 2], [3, 2**63]], None, "/a/1/1"),
        ([1e39], "float32", "/a/0"),
        ([70000.0], "float16", "/a/0"),
        ([1, Decimal("1e999")], "float64", "/a/1"),
    ],
)
def test_the_service_names_the_element_that_does_not_fit(client, a, dtype, pointer):
    with pytest.raises(Problem) as caught:
        client.dot(a, a, dtype=dtype)
    assert (caught.value.status, caught.value.name) == (422, "bad-value")
    assert caught.value.pointer == pointer


def test_rows_of_different_lengths_are_the_services_to_refuse(client):
    with pytest.raises(Problem) as caught:
        client.dot([[1, 2], [3]], [1, 2])
    assert caught.value.status == 422


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_would_be_rounded_twice_is_rounded_once(client, dtype):
    """An int between two floats of the type, nearer to the upper one by less than a float64 has."""
    precision = FLOATS[dtype][0]
    if dtype == "float16":
        texts = [Decimal(2049) + Decimal(10) ** -40]
    else:
        half = 1 << 70 - precision
        texts = [(1 << 70) + half + 1, Decimal((1 << 70) + half) + Decimal("0.001")]
    for number in texts:
        result = client.dot([number], [1], dtype=dtype)
        assert result.value == float(value_of(rounded(Fraction(number), dtype)[0], dtype))


def test_a_call_like_one_before_is_looked_at_where_it_differs(client):
    """Calls alike share what was settled about the first; each of these differs in one thing."""
    ones, twos = array.array("f", [1, 1]), array.array("f", [2, 2])
    for _ in range(2):
        assert client.dot(ones, twos).value == 4.0
        assert client.dot(twos, twos).value == 8.0
        assert client.dot(ones, twos, conjugate=True, id="x").id == "x"
        assert client.dot(ones, [2.0, 1.0]).value == 3.0
        assert client.dot([1.5, 1], [2.0, 1.0]).value == 4.0
        assert type(client.dot([1, 1], [2, 1]).value) is int
        assert client.dot([1, 1], [2, 1], dtype="int8").value == 3
        assert client.dot([1, 1], [2, 1], dtype="float64").value == 3.0
        assert client.dot([1.0, 1j], [2.0, 1.0]).value == 2 + 1j
        assert client.dot([[1.0, 1.0]], [2.0, 1.0]).value == [3.0]
        assert client.dot([Decimal(1), 1.0], [2.0, 1.0]).value == 3.0
        with pytest.raises(TypeError, match="str"):
            client.dot(["1", 1.0], [2.0, 1.0])


def test_a_list_that_does_not_fit_is_found_among_its_like(client):
    beside = array.array("f", [1, 1])
    assert client.dot(beside, [1.0, 2.0]).value == 3.0
    with pytest.raises(Problem) as caught:
        client.dot(beside, [1.0, 1e39])
    assert caught.value.pointer == "/b/1"
    assert client.dot([1, 2], [3, 4]).value == 11
    with pytest.raises(Problem) as caught:
        client.dot([1, 2**63], [3, 4])
    assert caught.value.pointer == "/a/1"


def test_not_finite_numbers_go_both_ways(client):
    for a, value in (([math.inf, 1.0], math.inf), ([-math.inf, 1], -math.inf)):
        result = client.dot(a, [1, 1])
        assert result.value == value and result.error_bound in (0.0, math.inf)
    result = client.dot([math.inf, Decimal(1)], [0, 1], dtype="float32")
    assert math.isnan(result.value) and result.flags == ("invalid",)
    overflow = client.dot([1e300], [1e300])
    assert overflow.value == math.inf and overflow.error_bound == math.inf
    assert set(overflow.flags) == {"inexact", "overflow"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lengths", [(3, 3), (1, 4, 0)])
def test_pairs_of_any_lengths_are_exact(client, dtype, lengths):
    pairs = [
        tuple(random_values(dtype, n, f"{dtype} {i} {side}") for side in "ab")
        for i, n in enumerate(lengths)
    ]
    expected = [expected_of(exact_dot(a, b, dtype), dtype) for a, b in pairs]
    for form in ("list", "bytes"):
        sent = [tuple(of_form(form, side, dtype) for side in pair) for pair in pairs]
        result = client.dot_pairs(sent, dtype=dtype)
        assert result.value == [value for value, _ in expected]
        assert result.bits == [bits for _, bits in expected]


def test_many_pairs_are_sent_from_where_they_lie(client):
    pairs = [(array.array("f", [i, 1]), array.array("f", [2, i])) for i in range(3000)]
    assert client.dot_pairs(pairs).value == [3.0 * i for i in range(3000)]


def test_pairs_of_mixed_lengths_are_sent_from_where_they_lie(client):
    pairs = [
        (array.array("f", [i] * (i % 7)), array.array("f", [2] * (i % 7))) for i in range(3000)
    ]
    assert client.dot_pairs(pairs).value == [2.0 * i * (i % 7) for i in range(3000)]
    swapped = numpy.arange(5, dtype=">f4"), numpy.ones(5, ">f4")
    assert list(client.dot_pairs([*pairs[:3], swapped]).value) == [0, 2, 8, 10]


def test_pairs_of_unequal_vectors_are_refused(client):
    with pytest.raises(Problem, match="length-mismatch|3"):
        client.dot_pairs([(array.array("f", [1, 2]), array.array("f", [1, 2, 3]))])


@pytest.mark.parametrize("wrong", [5, ([1],), ([1], [2], [3])])
def test_what_is_no_pair_is_told_by_its_number(plain_client, wrong):
    with pytest.raises(TypeError, match="pair 1 is not two vectors"):
        plain_client.dot_pairs([([1], [2]), wrong])


def test_pairs_may_be_drawn_from_a_generator(client):
    assert client.dot_pairs(([i], [2]) for i in (3, 4)).value == [6, 8]


@pytest.mark.parametrize("true", [1, numpy.True_, True])
def test_whatever_is_true_sets_a_flag(client, true):
    """One after the other in one process, because what equals is found among what was kept."""
    result = client.dot([1j], [1j], conjugate=true, diagnostics=true)
    assert (result.value, result.sum_abs) == (1 + 0j, [1.0, 0.0])
    assert client.dot([1j], [1j], conjugate=not true).value == -1 + 0j


def test_options_reach_the_service(client):
    result = client.dot([1 + 2j], [3 + 4j], conjugate=True, id="ä b/ü", accuracy="fast")
    assert result.value == 11 - 2j and result.id == "ä b/ü"
    result = client.dot([3.0, -1], [1, 1], diagnostics=True, device="cpu")
    assert (result.sum_abs, result.condition) == (4.0, 2.0)
    assert client.dot([1.0], [2], dtype="float32", kernel="tree").kernel == "tree"
    with pytest.raises(Problem, match="unknown-kernel"):
        client.dot([1], [2], kernel="nonesuch", dtype="float32")


def test_timing_adds_up(client):
    for operand in ([1.0], [1]):
        timing = client.dot(operand, operand).timing
        total = timing.pop("total")
        assert len(timing) == 6 and total > 0
        assert abs(sum(timing.values()) - total) < 0.01


@pytest.mark.parametrize(
    "a, b, options, word",
    [
        (1, [1], {}, "int"),
        ("12", [1], {}, "str"),
        ([1, "2"], [1, 2], {}, "str"),
        ([[1], "2"], [1], {}, "str"),
        ([1j], [1], {"dtype": "float64"}, "complex"),
        (numpy.ones(2, "f4"), numpy.ones(2), {}, "float32"),
        (numpy.ones(2), [1, 1], {"dtype": "float32"}, "float64"),
        (numpy.ones(2, "i2"), [1, 1], {}, "int16"),
        (numpy.ones(2, "u2"), [1, 1], {}, "bfloat16"),
        (numpy.ones(()), [1], {}, "dimension"),
        (numpy.ma.array([1.0, 2.0], mask=[0, 1]), [1.0, 1.0], {}, "masked"),
        (array.array("H", [1]), array.array("H", [1]), {"dtype": "float32"}, "float32"),
        (bytes(8), bytes(8), {}, "dtype='float32'"),
        (bytearray(8), [1, 2], {}, "dtype='float32'"),
        ([1], [1], {"nonesuch": 1}, "nonesuch"),
    ],
)
def test_operands_that_nobody_can_mean_are_type_errors(plain_client, a, b, options, word):
    with pytest.raises(TypeError, match=word):
        plain_client.dot(a, b, **options)


def test_bytes_are_of_the_type_of_the_array_beside_them(plain_client):
    floats = array.array("f", [1, 2, 3])
    for a, b in ((floats.tobytes(), floats), (floats, bytearray(floats.tobytes()))):
        assert plain_client.dot(a, b).value == 14.0


def test_names_of_types_that_do_not_exist_are_value_errors(plain_client):
    with pytest.raises(ValueError, match="float32"):
        plain_client.dot([1], [1], dtype="float31")
    with pytest.raises(ValueError, match="whole"):
        plain_client.dot(b"1234567", b"12345678", dtype="float32")


def test_types_may_be_named_as_python_and_numpy_name_them(plain_client):
    for dtype in ("f32", numpy.float32, numpy.dtype("f4"), "float32"):
        assert plain_client.dot([0.1], [1], dtype=dtype).value == float(numpy.float32(0.1))
    assert plain_client.dot([1], [2], dtype=float).value == 2.0


def test_an_array_larger_than_a_socket_buffer_streams_from_a_file(plain_client, tmp_path):
    mapped = numpy.memmap(tmp_path / "large", "f4", "w+", shape=(1 << 23,))
    mapped[:] = 0.5
    assert plain_client.dot(mapped, mapped).value == 0.25 * (1 << 23)


def test_the_package_needs_and_loads_nothing_but_the_standard_library(url):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import dotd_client\n"
        "print(dotd_client.Client(sys.argv[2]).dot([[1, 2], [3, 4]], [5.0, 6]).value)\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('numpy', 'ml_dtypes')])"
    )
    command = [sys.executable, "-I", "-c", program, str(ROOT / "clients/python"), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S)
    assert done.stdout == "[17.0, 39.0]\n[]\n", done.stderr
