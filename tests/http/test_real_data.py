"""Real vectors: all products of rows of tests/data, compared with exact integers and rationals."""

import json
from fractions import Fraction

import numpy as np
import pytest

from cases import numbers
from client import ROOT, ask

DATA = ROOT / "tests/data"
RAW = {"Accept": "application/octet-stream"}


def rows(name, kind):
    return [
        [kind(word) for word in line.split(",")] for line in (DATA / name).read_text().splitlines()
    ]


def exact(a, b):
    return [[sum(x * y for x, y in zip(row, other)) for other in b] for row in a]


@pytest.fixture(scope="module")
def digits():
    return rows("digits.csv", int)


@pytest.fixture(scope="module")
def digit_products(digits):
    return exact(digits, digits)


def test_the_digits_are_what_they_should_be(digits):
    assert (len(digits), {len(row) for row in digits}) == (200, {64})
    assert {value for row in digits for value in row} == set(range(17))


@pytest.mark.every_build
@pytest.mark.parametrize("dtype", numbers("float32", "float64"))
def test_all_products_of_digits_in_json_are_exact(daemon, digits, digit_products, dtype):
    request = {"a": [[row] for row in digits], "b": digits, "dtype": dtype}
    answer = daemon.dot(request).ok()
    assert (answer["shape"], answer["n"], answer["dtype"]) == ([200, 200], 64, dtype)
    assert answer["result"] == digit_products


@pytest.mark.every_build
@pytest.mark.parametrize("dtype", numbers("<f4", "<f8", ">f4", ">f8"))
def test_all_products_of_digits_in_binary_are_exact(daemon, digits, digit_products, dtype):
    body = np.array(digits, dtype).tobytes()
    query = f"dtype={dtype.replace('>', '%3E').replace('<', '%3C')}&shape_a=200,1,64&shape_b=200,64"
    answer = daemon.raw(body + body, query, RAW)
    assert (answer.status, answer.headers["Dotd-Shape"]) == (200, "200,200")
    assert np.frombuffer(answer.body, "<f8").reshape(200, 200).tolist() == digit_products


def test_one_product_after_the_other_is_exact(daemon, digits, digit_products):
    """Each row with its neighbour, JSON and binary in turn, on one connection."""
    connection = daemon.connect()
    for i in range(199):
        body = json.dumps({"a": digits[i], "b": digits[i + 1]})
        answer = ask(connection, "POST", "/v1/dot", body, {"Content-Type": "application/json"})
        assert answer.ok()["result"] == digit_products[i][i + 1]
        body = np.array(digits[i : i + 2], "<f4").tobytes()
        answer = ask(
            connection,
            "POST",
            "/v1/dot?dtype=f32",
            body,
            {"Content-Type": "application/octet-stream"},
        )
        assert answer.ok()["result"] == digit_products[i][i + 1]
    connection.close()


def test_pairs_of_digits_are_exact(daemon, digits, digit_products):
    """All rows with a few, cut to differing lengths."""
    chosen = [(i, j, 1 + (i + j) % 64) for i in range(200) for j in range(0, 200, 20)]
    pairs = [{"a": digits[i][:n], "b": digits[j][:n]} for i, j, n in chosen]
    answer = daemon.dot({"pairs": pairs, "dtype": "float32"}).ok()
    assert answer["n"] == [n for _, _, n in chosen]
    assert answer["result"] == [exact([pair["a"]], [pair["b"]])[0][0] for pair in pairs]


@pytest.fixture(scope="module")
def wine_text():
    return rows("wine.csv", str)


def rounded(text, dtype):
    """What a decimal is once it is an element, as an exact rational."""
    return [[Fraction(float(np.dtype(dtype).type(word))) for word in row] for row in text]


def check(results, bounds, expected):
    for result_row, bound_row, exact_row in zip(results, bounds, expected, strict=True):
        for result, bound, value in zip(result_row, bound_row, exact_row, strict=True):
            assert abs(Fraction(result) - value) <= Fraction(bound), (result, bound, float(value))
            assert bound <= 1e-9 * abs(float(value))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_products_of_wines_lie_within_their_bound(daemon, wine_text, dtype):
    wines = wine_text[::2]
    listed = ",".join("[" + ",".join(row) + "]" for row in wines)
    nested = ",".join("[[" + ",".join(row) + "]]" for row in wines)
    answer = daemon.dot(f'{{"a":[{nested}],"b":[{listed}],"dtype":"{dtype}"}}').ok()
    values = rounded(wines, dtype)
    check(answer["result"], answer["error_bound"], exact(values, values))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binary_and_json_agree_on_wines(daemon, wine_text, dtype):
    wines = wine_text[:20]
    body = np.array(wines, "f8").astype(dtype).tobytes()
    raw = daemon.raw(body + body, f"dtype={dtype}&shape_a=20,1,13&shape_b=20,13").ok()
    rows_text = ",".join("[" + ",".join(row) + "]" for row in wines)
    nested = ",".join("[[" + ",".join(row) + "]]" for row in wines)
    text = daemon.dot(f'{{"a":[{nested}],"b":[{rows_text}],"dtype":"{dtype}"}}').ok()
    assert (raw["bits"], raw["error_bound"]) == (text["bits"], text["error_bound"])
