"""The element types: their names, sizes, and how buffers call them."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, NamedTuple


class ElementType(NamedTuple):
    name: str
    size: int  # bytes of an element
    part_size: int  # bytes of a number: half an element when complex
    code: str  # of a number, for array and struct; empty for bfloat16, which they do not know
    is_integer: bool = False

    @property
    def is_complex(self) -> bool:
        return self.size != self.part_size


TYPES = {
    element.name: element
    for element in (
        ElementType("float16", 2, 2, "e"),
        ElementType("bfloat16", 2, 2, ""),
        ElementType("float32", 4, 4, "f"),
        ElementType("float64", 8, 8, "d"),
        ElementType("int8", 1, 1, "b", True),
        ElementType("uint8", 1, 1, "B", True),
        ElementType("int32", 4, 4, "i", True),
        ElementType("int64", 8, 8, "q", True),
        ElementType("complex64", 8, 4, "f"),
        ElementType("complex128", 16, 8, "d"),
    )
}

# Words of 16 bits, which dtype makes float16 or bfloat16.
WORDS = ElementType("uint16", 2, 2, "H")

# What bytes and bytearray hold until dtype tells: nearly always the bytes of wider elements.
BYTES = ElementType("bytes", 1, 1, "B")

ALIASES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i32": "int32",
    "i64": "int64",
    "c64": "complex64",
    "c128": "complex128",
    "float": "float64",
    "int": "int64",
    "complex": "complex128",
}

# Letters of struct that are signed integers, of a size that the buffer tells.
SIGNED = {1: "int8", 4: "int32", 8: "int64"}
OTHERS = {
    "B": "uint8",
    "c": "uint8",
    "e": "float16",
    "f": "float32",
    "d": "float64",
    "Zf": "complex64",
    "Zd": "complex128",
}


def type_named(dtype: Any) -> ElementType:
    """By name, as NumPy's dtype or scalar type, or as float, int or complex."""
    name = dtype if isinstance(dtype, str) else None
    name = name or getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or repr(dtype)
    element = TYPES.get(ALIASES.get(name, name))
    if element is None:
        raise ValueError(f"no element type {name}; known are {', '.join(TYPES)}")
    return element


def is_big_endian(order: str) -> bool:
    """order: the first letter of a buffer's format, which may not be one of order."""
    return order in (">", "!") or (order != "<" and sys.byteorder == "big")


@lru_cache(maxsize=64)
def element_of_format(text: str, size: int) -> tuple[ElementType, bool]:
    """(type, is big-endian) of a buffer's elements of so many bytes; formats as in struct and in
    PEP 3118."""
    letters = text.lstrip("@=<>!")
    name = OTHERS.get(letters, "")
    if letters in ("b", "h", "i", "l", "q", "n"):
        name = SIGNED.get(size, "")
    element = WORDS if letters == "H" else TYPES.get(name)
    if element is None:
        raise TypeError(f"the service has no elements like those of a buffer of format {text}")
    return element, is_big_endian(text[0]) and element.part_size > 1
