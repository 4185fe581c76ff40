"""What an exact answer must be, in Python's rationals: nothing here is shared with the daemon."""

import struct
from fractions import Fraction

# precision, exponent of the last bit of subnormals, exponent beyond the range, bits
FLOATS = {
    "float16": (11, -24, 16, 16),
    "bfloat16": (8, -133, 128, 16),
    "float32": (24, -149, 128, 32),
    "float64": (53, -1074, 1024, 64),
}
INTEGERS = {"int8": ("b", 1), "uint8": ("B", 1), "int32": ("i", 4), "int64": ("q", 8)}
COMPLEX = {"complex64": "float32", "complex128": "float64"}
NAN, INFINITY = "NaN", "Infinity"


def size_of(dtype):
    if dtype in COMPLEX:
        return 2 * size_of(COMPLEX[dtype])
    return INTEGERS[dtype][1] if dtype in INTEGERS else FLOATS[dtype][3] // 8


def value_of(bits, dtype):
    """A Fraction, or NaN, Infinity or -Infinity as a word."""
    precision, lowest, _, size = FLOATS[dtype]
    sign = -1 if bits >> (size - 1) else 1
    magnitude = bits & (1 << (size - 1)) - 1
    fraction, field = magnitude & (1 << (precision - 1)) - 1, magnitude >> (precision - 1)
    if field == (1 << (size - precision)) - 1:
        return NAN if fraction else INFINITY if sign > 0 else "-" + INFINITY
    if field > 0:
        fraction |= 1 << (precision - 1)
    return sign * fraction * Fraction(2) ** (max(field, 1) - 1 + lowest)


def floor_log2(value):
    power = value.numerator.bit_length() - value.denominator.bit_length()
    return power if value >= Fraction(2) ** power else power - 1


def rounded(exact, dtype):
    """exact, rounded once to nearest, ties to even: its bits, and the flags of that rounding."""
    precision, lowest, top, size = FLOATS[dtype]
    if exact == 0:
        return 0, []
    sign = 1 << (size - 1) if exact < 0 else 0
    quantum = max(floor_log2(abs(exact)) - precision + 1, lowest)
    whole = round(abs(exact) / Fraction(2) ** quantum)  # Python rounds Fractions to even
    value = whole * Fraction(2) ** quantum
    if value >= Fraction(2) ** top:
        return sign | ((1 << (size - precision)) - 1) << (precision - 1), ["inexact", "overflow"]
    flags = [] if value == abs(exact) else ["inexact"]
    if flags and value < Fraction(2) ** (lowest + precision - 1):
        flags.append("underflow")
    if whole == 1 << precision:
        whole, quantum = whole >> 1, quantum + 1
    return sign | ((quantum - lowest) << (precision - 1)) + whole, flags


def half_unit(bits, dtype):
    """Half of what is between a number of these bits and its neighbour, at most."""
    precision, lowest, _, size = FLOATS[dtype]
    field = (bits & (1 << (size - 1)) - 1) >> (precision - 1)
    return Fraction(2) ** (max(field, 1) - 1 + lowest - 1)


def encode(values, dtype):
    """Little-endian bytes of numbers that dtype holds."""
    if dtype in COMPLEX:
        return encode([part for pair in values for part in pair], COMPLEX[dtype])
    if dtype in INTEGERS:
        return struct.pack(f"<{len(values)}{INTEGERS[dtype][0]}", *values)
    return b"".join(encode_float(value, dtype) for value in values)


def encode_float(value, dtype):
    size = FLOATS[dtype][3]
    if isinstance(value, str):
        precision = FLOATS[dtype][0]
        bits = ((1 << (size - precision)) - 1) << (precision - 1)
        bits |= {NAN: 1 << (precision - 2), INFINITY: 0, "-" + INFINITY: 1 << (size - 1)}[value]
    elif value == 0:  # the sign of a float's zero counts
        bits = 1 << (size - 1) if isinstance(value, float) and str(value)[0] == "-" else 0
    else:
        bits, _ = rounded(Fraction(value), dtype)
    return bits.to_bytes(size // 8, "little")
