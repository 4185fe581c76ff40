#!/usr/bin/env python3
"""Writes pow10.c: python3 proto/pow10.py > proto/pow10.c

Each row is floor(10^q / 2^(b - 127)) with b = floor(log2 10^q): 128 bits whose top bit is set.
Integers only, so the table is exact by construction; the formula for b that C uses is checked here.
"""

from fractions import Fraction

Q_MIN, Q_MAX = -342, 324


def log2_floor(value):
    b = value.numerator.bit_length() - value.denominator.bit_length()
    return b if value >= Fraction(2) ** b else b - 1


print("/* pow10.c - written by pow10.py; change that and run it again. */")
print('#include "proto/pow10.h"')
print()
print("/* clang-format off: one power a line */")
print("const struct pow10 pow10_table[POW10_MAX - POW10_MIN + 1] = {")
for q in range(Q_MIN, Q_MAX + 1):
    power = Fraction(10) ** q
    b = log2_floor(power)
    assert b == (q * 1741647) >> 19, q
    scaled = power * Fraction(2) ** (127 - b)
    assert (scaled.denominator == 1) == (0 <= q <= 55), q
    bits = scaled.numerator // scaled.denominator
    assert bits.bit_length() == 128
    print(f"    {{0x{bits >> 64:016x}, 0x{bits & (2**64 - 1):016x}}}, /* {q} */")
print("};")
