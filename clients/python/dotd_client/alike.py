"""Operands like some that were looked at before: what was found out about those is true of them.

Door: outline() is all that decides how a plain operand travels, packer_of() makes its bytes. To
look at types, shapes and kinds of numbers anew would cost more than all the rest of a small call.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Callable, Hashable
from typing import Any

from .operands import Buffer, Raw, bytes_of, bytes_of_array, may_round_twice, numpy

FLAT = {int, float, bool}

Packer = Callable[[Any], Buffer]


def outline(value: Any) -> Hashable:
    """What is equal for operands that differ in their numbers at most; None: who knows."""
    kind = type(value)
    if kind is array.array:
        return value.typecode, len(value)
    if kind is list:
        kinds = set(map(type, value))
        return (frozenset(kinds), len(value)) if kinds <= FLAT else None
    np = numpy()
    if np is not None and kind is np.ndarray:
        return (value.dtype, value.shape) if value.flags.c_contiguous else None
    return (kind, len(value)) if kind is bytes else None


def packer_of(value: Any, raw: Raw) -> Packer | None:
    """Of an operand that has an outline, and was found to travel as raw: what makes the bytes of
    its like. It raises OverflowError or struct.error for a number that the type does not hold.
    None: each has to be looked at."""
    if raw.is_big:
        return None  # it may be turned, as the other one is
    if isinstance(value, list):
        element = raw.element
        if element.is_complex or may_round_twice(set(map(type, value)), element):
            return None
        pack = struct.Struct(f"={len(value)}{element.code}").pack
        return lambda numbers: pack(*numbers)
    return bytes_of if isinstance(value, (array.array, bytes)) else bytes_of_array
