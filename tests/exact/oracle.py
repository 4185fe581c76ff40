#!/usr/bin/env python3
"""Works out again, in Python's integers, every row that exact_dump printed, and compares all of it.

usage: oracle.py PROGRAM [SEED [ROWS]] runs the program and reads its output.
Shares nothing with the daemon: numbers are whole multiples of 2^BASE, sums are Python's.
"""
import math
import struct
import subprocess
import sys
from collections import Counter

BASE = -2200  # below every product: 2^-2148
INEXACT, INVALID, NAN_INPUT, OVERFLOW, UNDERFLOW = 1, 2, 4, 8, 16
NAN, INFINITY = 0x7FF8 << 48, 0x7FF << 52

# precision, exponent of a subnormal's lowest bit, first exponent beyond, bytes
FLOATS = {
    "float16": (11, -24, 16, 2),
    "bfloat16": (8, -133, 128, 2),
    "float32": (24, -149, 128, 4),
    "float64": (53, -1074, 1024, 8),
}
PARTS = {"complex64": "float32", "complex128": "float64"}
INTEGERS = {"int8": "b", "uint8": "B", "int32": "i", "int64": "q"}


def numbers(name, data):
    """Each is (m, q), meaning m 2^q, or "nan", "inf", "-inf"."""
    precision, low, _, size = FLOATS[name]
    fraction = precision - 1
    ones = (1 << (8 * size - precision)) - 1
    for at in range(0, len(data), size):
        bits = int.from_bytes(data[at : at + size], "little")
        m, field, sign = bits & ((1 << fraction) - 1), bits >> fraction & ones, bits >> (8 * size - 1)
        if field == ones:
            yield "nan" if m else "-inf" if sign else "inf"
        else:
            m += (field > 0) << fraction
            yield (-m if sign else m, max(field, 1) - 1 + low)


def is_zero(x):
    return not isinstance(x, str) and x[0] == 0


def is_negative(x):
    return x == "-inf" or not isinstance(x, str) and x[0] < 0


def product_word(x, y):
    if "nan" in (x, y):
        return "nan"
    if is_zero(x) or is_zero(y):
        return "invalid"
    return "-inf" if is_negative(x) != is_negative(y) else "inf"


def total(terms):
    """The sum in units of 2^BASE, and the words of the products that are not finite."""
    value, words = 0, set()
    for x, y, sign in terms:
        if isinstance(x, str) or isinstance(y, str):
            word = product_word(x, y)
            if sign < 0 and word.endswith("inf"):
                word = "inf" if word == "-inf" else "-inf"
            words.add(word)
        else:
            value += sign * x[0] * y[0] << (x[1] + y[1] - BASE)
    return value, words


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def settle(words):
    invalid = "invalid" in words or {"inf", "-inf"} <= words
    flags = (NAN_INPUT if "nan" in words else 0) | (INVALID if invalid else 0)
    if flags:
        return NAN, 0, flags
    return INFINITY | ("-inf" in words) << 63, 0, 0


def rounded(value, base, name):
    """Bits of the sum as float64, bits of the bound, flags."""
    precision, low, beyond, _ = FLOATS[name]
    size = abs(value)
    q = max(size.bit_length() - precision, low - base, 0)
    m, rest = size >> q, size & ((1 << q) - 1)
    if 2 * rest > 1 << q or 2 * rest == 1 << q and m & 1 and q:
        m += 1
    sign = (value < 0) << 63
    if m and m.bit_length() + q + base > beyond:
        return INFINITY | sign, INFINITY, INEXACT | OVERFLOW
    flags, bound = 0, 0.0
    if rest:
        flags = INEXACT | (UNDERFLOW if m < 1 << (precision - 1) else 0)
        bound = max(math.ldexp(1.0, q + base - 1), 5e-324)
    return bits_of(math.ldexp(float(m), q + base)) | sign, bits_of(bound), flags


def expect(name, result, conjugate, a, b):
    """[(bits of sum, bits of bound, flags, integer)] for each value of the row."""
    if name in INTEGERS:
        size = struct.calcsize(INTEGERS[name])
        count = len(a) // size
        x, y = (struct.unpack(f"<{count}{INTEGERS[name]}", data) for data in (a, b))
        value = sum(p * q for p, q in zip(x, y))
        if result == "int64":
            return [(bits_of(float(value)), 0, 0, value)]
        return [(*rounded(value, 0, result), value)]
    part = PARTS.get(name, name)
    x, y = list(numbers(part, a)), list(numbers(part, b))
    if name in PARTS:
        re_a, im_a, re_b, im_b = x[::2], x[1::2], y[::2], y[1::2]
        minus = 1 if conjugate else -1
        sums = [
            [*((p, q, 1) for p, q in zip(re_a, re_b)), *((p, q, minus) for p, q in zip(im_a, im_b))],
            [*((p, q, 1) for p, q in zip(re_a, im_b)), *((p, q, -minus) for p, q in zip(im_a, re_b))],
        ]
    else:
        sums = [[(p, q, 1) for p, q in zip(x, y)]]
    values = []
    for terms in sums:
        value, words = total(terms)
        answer = settle(words) if words else rounded(value, BASE, PARTS.get(result, result))
        values.append((*answer, 0))
    return values


def read(fields):
    """What the program answered, in the form of expect()."""
    for at in range(0, len(fields), 4):
        integer = int(fields[at + 3], 16)
        yield (
            int(fields[at], 16),
            int(fields[at + 1], 16),
            int(fields[at + 2]),
            integer - (1 << 192) if integer >> 191 else integer,
        )


def main():
    run = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
    rows, wrong, seen = 0, 0, Counter()
    for line in run.stdout:
        name, result, conjugate, n, a, b, *fields = line.split()
        want = expect(name, result, conjugate == "1", bytes.fromhex(a[1:]), bytes.fromhex(b[1:]))
        got = list(read(fields))
        rows += 1
        for flag in ("INEXACT", "INVALID", "NAN_INPUT", "OVERFLOW", "UNDERFLOW"):
            seen[flag] += want[0][2] & globals()[flag] > 0
        if got != want:
            wrong += 1
            if wrong <= 10:
                print(f"row {rows}: {name} -> {result}, conjugate {conjugate}, n {n}")
                for g, w in zip(got, want):
                    print(f"  got  {g[0]:016x} bound {g[1]:016x} flags {g[2]} integer {g[3]}")
                    print(f"  want {w[0]:016x} bound {w[1]:016x} flags {w[2]} integer {w[3]}")
    print(f"{rows} rows, {wrong} wrong;", ", ".join(f"{k} {v}" for k, v in seen.items()))
    return 0 if run.wait() == 0 and rows > 0 and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
