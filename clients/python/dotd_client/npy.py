"""Operands from files: .npy of any version, or raw elements. Mapped, not read, and without NumPy.

The format: numpy.lib.format, "NPY format".
"""

from __future__ import annotations

import ast
import mmap
import os
import struct
from math import prod

from .elements import TYPES, WORDS, ElementType
from .operands import Raw

MAGIC = b"\x93NUMPY"
HEADER_BYTES = 64 << 10
KINDS = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "i1": "int8",
    "u1": "uint8",
    "i4": "int32",
    "i8": "int64",
    "c8": "complex64",
    "c16": "complex128",
    "bfloat16": "bfloat16",
}


def mapped(path: str) -> memoryview:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")  # which mmap() refuses
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def open_operand(path: str, element: ElementType | None) -> Raw:
    """element: of raw files, and of words of 16 bits in .npy."""
    data = mapped(path)
    if bytes(data[: len(MAGIC)]) == MAGIC:
        return read_npy(data, path)
    if element is None:
        raise ValueError(f"{path} is no .npy file: say the type of its raw elements, --dtype")
    if len(data) % element.size:
        raise ValueError(f"{path}: {len(data)} bytes are no whole {element.name} elements")
    return Raw(element, (len(data) // element.size,), data, is_big=False)


def header_of(data: memoryview, path: str) -> tuple[dict[str, object], memoryview]:
    """(the header's fields, what follows it)"""
    if len(data) < 12 or data[6] not in (1, 2, 3):
        raise ValueError(f"{path}: no .npy of version 1, 2 or 3")
    start, layout = (10, "<H") if data[6] == 1 else (12, "<I")
    (size,) = struct.unpack(layout, data[8:start])
    if size > HEADER_BYTES or start + size > len(data):
        raise ValueError(f"{path}: a header of {size} bytes")
    text = bytes(data[start : start + size]).decode("latin-1" if data[6] < 3 else "utf-8")
    try:
        fields = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        fields = None
    if not isinstance(fields, dict) or not {"descr", "fortran_order", "shape"} <= fields.keys():
        raise ValueError(f"{path}: its header is not one of .npy")
    return fields, data[start + size :]


def read_npy(data: memoryview, path: str) -> Raw:
    fields, elements = header_of(data, path)
    descr, shape = fields["descr"], fields["shape"]
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"{path}: its shape is {shape!r}")
    if fields["fortran_order"] and len(shape) > 1:
        raise ValueError(f"{path} is in Fortran order: save it with numpy.ascontiguousarray()")
    if not isinstance(descr, str):
        raise ValueError(f"{path} holds records, not numbers")
    kind = descr.lstrip("<>|=")
    if kind not in KINDS and kind not in ("V2", "u2"):
        raise ValueError(f"{path} has elements of type {descr}, which the service does not know")
    element = TYPES[KINDS[kind]] if kind in KINDS else WORDS
    if len(elements) != prod(shape) * element.size:
        raise ValueError(f"{path}: {len(elements)} bytes of elements do not make {shape}")
    is_big = descr[0] == ">" and element.part_size > 1
    return Raw(element, shape, elements, is_big, is_untyped=element is WORDS)
