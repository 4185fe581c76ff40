#!/usr/bin/env python3
"""Writes decimals.txt, shortest.txt and narrow.txt, in exact rational arithmetic:

    python3 tests/unit/data/decimals.py tests/unit/data

decimals.txt: a decimal, its float64 bits, its float32 bits; "inf" where it is beyond the range.
shortest.txt: a type, its bits, the shortest decimal that reads back to them, as repr writes it.
narrow.txt: "read", a type, a decimal, its bits, or "refused" where the type does not hold it;
"print", a type, its bits, the shortest decimal that reads back to them.
"""

import random
import struct
import sys
from fractions import Fraction

FLOAT64 = (53, -1074, 1024)
FLOAT32 = (24, -149, 128)
NARROW = {"float16": (11, -24, 16), "bfloat16": (8, -133, 128)}
INTEGERS = {"int8": 8, "uint8": 8, "int32": 32, "int64": 64}


def floor_log2(value):
    b = value.numerator.bit_length() - value.denominator.bit_length()
    return b if value >= Fraction(2) ** b else b - 1


def round_to(value, kind):
    """value >= 0, rounded to nearest, ties to even: (m, e) with m 2^e, or None beyond the range."""
    precision, lowest, top = kind
    if value == 0:
        return 0, lowest
    e = max(floor_log2(value) - precision + 1, lowest)
    m = round(value / Fraction(2) ** e)  # Python rounds Fractions to even
    if m == 2**precision:
        m, e = m // 2, e + 1
    return None if m * Fraction(2) ** e >= Fraction(2) ** top else (m, e)


def bits_of(text, kind):
    precision, lowest, top = kind
    rounded = round_to(abs(Fraction(text)), kind)
    if rounded is None:
        return "inf"
    m, e = rounded
    bits = ((e - lowest) << (precision - 1)) + m
    size = {53: 64, 24: 32}.get(precision, 16)
    if text.startswith("-"):
        bits |= 1 << (size - 1)
    return f"{bits:0{size // 4}x}"


def decimal_text(value):
    """All digits of a dyadic rational, as digits and an exponent."""
    k = value.denominator.bit_length() - 1
    return value.numerator * 5**k, -k


def neighbours(value):
    """The exact text, and one unit in its last place, and one far behind it, to both sides."""
    digits, exponent = decimal_text(value)
    yield f"{digits}e{exponent}"
    for d in (digits - 1, digits + 1):
        yield f"{d}e{exponent}"
    yield f"{digits}{'0' * 30}1e{exponent - 31}"
    yield f"{digits - 1}{'9' * 31}e{exponent - 31}"


def spread(text):
    """The same number with a point in it."""
    mantissa, exponent = text.split("e")
    if len(mantissa) < 2:
        return text
    return f"{mantissa[0]}.{mantissa[1:]}e{int(exponent) + len(mantissa) - 1}"


def midpoint(m, e):
    return (2 * m + 1) * Fraction(2) ** (e - 1)


def decimals(rng):
    yield from ("0", "-0", "0.0", "-0.0e5", "1e-400", "-1e-400", "0e999", "1e999", "-1e999", "1e23", "8.5e22")
    yield from ("9007199254740993", "9007199254740992.5", "9007199254740993.0000000000000000001")
    yield from ("1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1.8e308")
    yield from ("3.4028234663852886e38", "3.4028235e38", "3.4028235677973366e38", "3.5e38", "-3.5e38")
    yield from ("2.4703282292062327e-324", "2.4703282292062328e-324", "5e-324", "2.2250738585072011e-308")
    yield from ("1.0000000596046448", "1.00000005960464477539062500000000000001", "7.006492321624085e-46")
    yield from ("1" + "0" * 400 + "e-400", "0." + "0" * 400 + "1e401", "123456789" * 40 + "e-355")
    edges64 = [(0, -1074), (1, -1074), (2**52 - 1, -1074), (2**52, -1074), (2**53 - 1, 971)]
    edges64 += [(2**52 + rng.getrandbits(52), e) for e in (-1000, -400)]
    middle64 = [(2**52 + rng.getrandbits(52), e) for e in (-80, -60, -52, -20, -1, 0, 1, 9, 60, 200, 900)]
    edges32 = [(0, -149), (1, -149), (2**23 - 1, -149), (2**23, -149), (2**24 - 1, 104)]
    edges32 += [(2**23 + rng.getrandbits(23), e) for e in range(-148, 104, 12)]
    for m, e in edges64 + middle64 + edges32:
        for i, text in enumerate(neighbours(midpoint(m, e))):
            yield spread(text) if i % 2 else text
    for _ in range(400):
        digits = rng.randrange(10 ** rng.randrange(1, 26))
        yield f"{rng.choice(['', '-'])}{digits}e{rng.randrange(-345, 310)}"
    for _ in range(200):
        digits = rng.randrange(10 ** rng.randrange(1, 22))
        yield spread(f"{digits}e{rng.randrange(-60, 40)}")


def float_of(bits, kind):
    precision, lowest, _ = kind
    m = bits & (1 << (precision - 1)) - 1
    biased = bits >> (precision - 1)
    return (m, lowest) if biased == 0 else (m | 1 << (precision - 1), biased - 1 + lowest)


def shortest_text(bits, kind):
    """By trying: the fewest digits of which a candidate reads back, then the nearest of those."""
    m, e = float_of(bits, kind)
    value = m * Fraction(2) ** e
    ten = 0
    while Fraction(10) ** ten > value:
        ten -= 1
    while Fraction(10) ** (ten + 1) <= value:
        ten += 1
    for count in range(1, 18):
        unit = Fraction(10) ** (ten - count + 1)
        low = value // unit
        fits = [d for d in (low, low + 1) if round_to(d * unit, kind) == round_to(value, kind)]
        if fits:
            best = min(fits, key=lambda d: (abs(d * unit - value), d % 2))
            return repr_text(str(best).rstrip("0"), len(str(best)) + ten - count + 1)
    raise AssertionError(bits)


def repr_text(digits, point):
    if -4 < point <= 0:
        return "0." + "0" * -point + digits
    if 0 < point <= 16:
        padded = digits.ljust(point, "0")
        return padded[:point] + "." + (padded[point:] or "0")
    text = digits if len(digits) == 1 else digits[0] + "." + digits[1:]
    return f"{text}e{'-' if point < 1 else '+'}{abs(point - 1):02}"


def shortest(rng):
    some64 = [1, 2, 3, 2**52 - 1, 2**52, 2**52 + 1, 0x7FEFFFFFFFFFFFFF, 0x4340000000000000, 0x44B52D02C7E14AF6]
    some64 += [b << 52 for b in range(1, 0x7FF, 29)]
    some64 += [struct.unpack("<Q", struct.pack("<d", 10.0**k))[0] for k in range(-20, 30)]
    some64 += [struct.unpack("<Q", struct.pack("<d", k / 8 + 0.1))[0] for k in range(40)]
    some64 += [rng.randrange(1, 0x7FF0000000000000) for _ in range(250)]
    for bits in some64:
        text = shortest_text(bits, FLOAT64)
        assert text == repr(struct.unpack("<d", struct.pack("<Q", bits))[0]), (bits, text)
        yield f"float64 {bits:016x} {text}"
    some32 = [1, 2, 3, 2**23 - 1, 2**23, 2**23 + 1, 0x7F7FFFFF, 0x4B800000]
    some32 += [b << 23 for b in range(1, 0xFF, 5)] + [rng.randrange(1, 0x7F800000) for _ in range(250)]
    some32 += [struct.unpack("<I", struct.pack("<f", k / 10))[0] for k in range(1, 40)]
    for bits in some32:
        yield f"float32 {bits:08x} {shortest_text(bits, FLOAT32)}"


def narrow_decimals(rng, kind):
    precision, lowest, top = kind
    half = 2 ** (precision - 1)
    yield from ("0", "-0", "1e-400", "-1e-400", "1e308", "1e999", "0.1", "-2.5", "65504", "65519.999", "65520")
    edges = [(0, lowest), (1, lowest), (half - 1, lowest), (half, lowest), (2 * half - 1, top - precision)]
    edges += [(half + rng.randrange(half), rng.randrange(lowest + 1, top - precision)) for _ in range(40)]
    for m, e in edges:
        for i, text in enumerate(neighbours(midpoint(m, e))):
            sign = rng.choice(["", "-"])
            yield sign + (spread(text) if i % 2 else text)


def whole_texts(rng, value):
    """The number in several ways of writing it, all of the same value."""
    zeros = rng.randrange(1, 25)
    yield f"{value}"
    yield f"{value}.{'0' * zeros}"
    yield f"{value}{'0' * zeros if value else ''}e-{zeros}"
    yield f"{spread(f'{value}e0') if value > 0 else f'{value}e0'}"


def integers(rng, bits, is_signed):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    yield from ("0", "-0", "-0.0e9", "0e-999", "1e2", "12e1", "1.0", "0.5", "1e-1", "1e-400", "NaN", "Infinity")
    yield from ("9007199254740993", "9007199254740993.0", "9007199254740993.00000000000000000000000001", "1e999")
    for value in (low - 1, low, low + 1, high - 1, high, high + 1, 2**53 + 1, 2**62 + 1, 2**63 - 257, 2**64 + 1):
        for text in whole_texts(rng, value):
            yield text
        yield f"{value}.{'0' * 30}1"
    for _ in range(60):
        for text in whole_texts(rng, rng.randrange(low, high + 1) >> rng.randrange(bits)):
            yield text


def integer_bits(text, bits, is_signed):
    if text in ("NaN", "Infinity"):
        return "refused"
    value = Fraction(text)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    if value.denominator != 1 or not low <= value <= high:
        return "refused"
    return f"{int(value) % 2**bits:0{bits // 4}x}"


def narrow(rng):
    for name, kind in NARROW.items():
        for text in narrow_decimals(rng, kind):
            yield f"read {name} {text} {bits_of(text, kind).replace('inf', 'refused')}"
        infinity = (kind[2] * 2 - 1) << (kind[0] - 1)
        edges = [1, 2, 3, 2 ** (kind[0] - 1) - 1, 2 ** (kind[0] - 1), infinity - 1]
        for bits in edges + [rng.randrange(1, infinity) for _ in range(250)]:
            yield f"print {name} {bits:04x} {shortest_text(bits, kind)}"
    for name, bits in INTEGERS.items():
        for text in integers(rng, bits, name[0] == "i"):
            yield f"read {name} {text} {integer_bits(text, bits, name[0] == 'i')}"


def main(folder):
    rng = random.Random(20240229)
    with open(f"{folder}/decimals.txt", "w") as file:
        for text in decimals(rng):
            print(text, bits_of(text, FLOAT64), bits_of(text, FLOAT32), file=file)
    with open(f"{folder}/shortest.txt", "w") as file:
        for line in shortest(rng):
            print(line, file=file)
    with open(f"{folder}/narrow.txt", "w") as file:
        for line in narrow(rng):
            print(line, file=file)


main(sys.argv[1])
