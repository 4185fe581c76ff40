"""The dot products that every server is asked for, and how each is written down for it."""

import array
import collections
import fractions
import functools
import json
import random

ALL = ("fastapi", "mlserver", "node", "pytriton")
PYTHON = ("fastapi", "mlserver", "pytriton")
TRITON = ("pytriton",)

# How a number of a body is drawn.
KINDS = {
    "1024ths": lambda draw: draw.randint(1, 1023) / 1024,  # floats exactly; ten digits at most
    "9 digits": lambda draw: float(f"{draw.random():.9g}"),
    "17 digits": lambda draw: draw.random(),
}

# form: json, binary, or client, which is binary through PyTriton's own. kind: of numbers. asked: the
# rivals that take part. compared: those that the best is one of. wanted: dotd's ratio to it.
Case = collections.namedtuple("Case", "name title form kind n asked compared wanted")

CASES = [
    Case(f"{name}-{n}", f"{title}, n = {n}", form, kind, n, asked, compared, wanted)
    for name, title, form, kind, asked, compared, wanted in (
        ("json", "JSON, 1024ths", "json", "1024ths", ALL, ALL, 5),
        ("json9", "JSON, 9 digits", "json", "9 digits", ALL, ALL, 5),
        ("json17", "JSON, 17 digits", "json", "17 digits", ALL, ALL, 5),
        ("binary", "binary", "binary", "1024ths", ALL, PYTHON, 5),
        ("client", "PyTriton's client", "client", "1024ths", TRITON, TRITON, 2),
    )
    for n in (1024, 65536)
]


@functools.cache
def operands(case):
    """Two lists between -1 and 1. Every product is positive, so that a sum gone wrong shows."""
    draw = random.Random(case.name)
    number = KINDS[case.kind]
    signs = [draw.choice((-1, 1)) for _ in range(case.n)]
    return [[sign * number(draw) for sign in signs] for _ in "ab"]


@functools.cache
def expected(case):
    a, b = operands(case)
    return float(sum(fractions.Fraction(x) * fractions.Fraction(y) for x, y in zip(a, b)))


def is_right(case, result):
    """Within what n roundings in the type of the operands can do at most."""
    unit = 2.0**-53 if case.form == "json" else 2.0**-24
    return abs(result - expected(case)) <= case.n * unit * expected(case)


def plain_json(case):
    a, b = operands(case)
    return json.dumps({"a": a, "b": b}, separators=(",", ":")).encode()


def plain_binary(case):
    """Little-endian float32, all of a and then all of b."""
    return b"".join(array.array("f", values).tobytes() for values in operands(case))


def tensor(name, shape, datatype, **more):
    return {"name": name, "shape": shape, "datatype": datatype, **more}


def inference(tensors):
    return json.dumps({"inputs": tensors}, separators=(",", ":")).encode()


def json_tensors(case, shape):
    """For the Open Inference Protocol."""
    pairs = zip("ab", operands(case))
    return inference([tensor(name, shape, "FP64", data=values) for name, values in pairs])


def binary_tensors(case, shape):
    """(body, bytes of its JSON): the elements stand behind the JSON."""
    parameters = {"binary_data_size": 4 * case.n}
    head = inference([tensor(name, shape, "FP32", parameters=parameters) for name in "ab"])
    return head + plain_binary(case), len(head)
