"""Operands on their way out: arrays and buffers as they lie in memory, lists packed once.

Door: operands_of(). Nothing here copies an array that is contiguous; what the raw form cannot carry
stays numbers, which travel as JSON, so that the service is who names the element that is wrong.
"""

from __future__ import annotations

import array
import struct
import sys
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Union

from .elements import BYTES, TYPES, WORDS, ElementType, element_of_format, type_named

EXACT_INTEGER = 2**53  # up to here an int is a float64, and so rounds once on its way to less


class Raw(NamedTuple):
    """Elements as bytes in C order."""

    element: ElementType
    shape: tuple[int, ...]
    data: memoryview  # format B, one dimension; keeps its owner alive
    is_big: bool
    is_untyped: bool = False  # bytes of whatever dtype says
    is_array: bool = False  # NumPy's


class Listed(NamedTuple):
    """Numbers of Python's own, not packed yet. shape is None when rows differ."""

    values: Any
    shape: tuple[int, ...] | None
    flat: list[Any]
    kinds: set[type]
    is_array: bool = False


Operand = Union[Raw, Listed]
Buffer = Union[bytes, memoryview]


def numpy() -> Any:
    """NumPy, if the program has imported it: it may not be installed, and costs time to import."""
    return sys.modules.get("numpy")


def bytes_of(buffer: Any) -> memoryview:
    """The same memory as bytes. What is not contiguous, or of a format that memoryview cannot cast
    (ctypes' arrays), is copied. PickleBuffer.raw() casts all, but Python 3.11 crashes when such a
    view is part of a cycle that is collected."""
    view = memoryview(buffer)
    if view.nbytes == 0:
        return memoryview(b"")  # no cast takes a zero in a shape
    try:
        return view.cast("B")
    except (TypeError, ValueError):
        return memoryview(view.tobytes())


def bytes_of_array(value: Any) -> memoryview:
    """Of NumPy's arrays in C order; bytes_of() would copy complex numbers, and ml_dtypes' have no
    buffers of their own."""
    try:
        return memoryview(value).cast("B")
    except (TypeError, ValueError):
        return bytes_of(value.reshape(-1).view("uint8"))


@lru_cache(maxsize=64)
def element_of_dtype(dtype: Any) -> tuple[ElementType, bool]:
    """(type, is big-endian) of NumPy's arrays."""
    name = dtype.name
    element = WORDS if name == "uint16" else TYPES.get(name)
    if element is None:
        raise TypeError(f"the service has no elements of type {name}: convert the array, astype()")
    return element, dtype.isnative == (sys.byteorder == "big") and element.part_size > 1


def look_at_array(value: Any) -> Operand:
    if value.dtype.kind == "O":
        return look_at_list(value.tolist())._replace(is_array=True)
    element, is_big = element_of_dtype(value.dtype)
    if not value.flags.c_contiguous:
        value = value.copy("C")
    return Raw(element, value.shape, bytes_of_array(value), is_big, element is WORDS, True)


def look_at_buffer(view: memoryview, is_plain: bool) -> Raw:
    element, is_big = element_of_format(view.format, view.itemsize)
    is_untyped = element is WORDS or (is_plain and view.itemsize == 1)
    return Raw(element, view.shape or (), bytes_of(view), is_big, is_untyped)


def level(rows: list[Any]) -> tuple[int | None, list[Any]]:
    """(length of every row, or None when they differ; all their elements in order)."""
    size = len(rows[0]) if isinstance(rows[0], (list, tuple)) else 0
    alike = all(isinstance(row, (list, tuple)) and len(row) == size for row in rows)
    return (size, list(chain.from_iterable(rows))) if alike else (None, [])


def plain(value: Any) -> Any:
    """A list with nothing but Python's numbers and lists in it."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


PLAIN = {int, float, complex, bool, Decimal, list, tuple}


def leaves(values: Any) -> Iterable[Any]:
    if not isinstance(values, list):
        return [values]
    return chain.from_iterable(map(leaves, values))


def plain_kinds(values: list[Any]) -> set[type]:
    kinds = set(map(type, leaves(values)))
    for kind in kinds - PLAIN:
        raise TypeError(f"an element is of type {kind.__name__}: neither a number nor a list")
    return kinds


def look_at_list(values: list[Any]) -> Listed:
    shape: tuple[int, ...] | None = (len(values),)
    flat, kinds = values, set(map(type, values))
    while kinds & {list, tuple}:
        size, flat = level(flat)
        if size is None:
            values = plain(values)
            return Listed(values, None, [], plain_kinds(values))
        shape = (*(shape or ()), size)
        kinds = set(map(type, flat))
    if not kinds <= PLAIN:  # NumPy's scalars and arrays among them
        values = plain(values)
        plain_kinds(values)
        return look_at_list(values)
    return Listed(values, shape, flat, kinds)


def look(value: Any, name: str) -> Operand:
    if isinstance(value, list):
        return look_at_list(value)
    if isinstance(value, Raw):
        return value
    np = numpy()
    operand: Operand
    if np is not None and isinstance(value, np.ndarray):
        if np.ma.is_masked(value):
            raise TypeError(f"{name} has masked elements: say what they count as, filled(0)")
        operand = look_at_array(value)
    elif np is not None and hasattr(value, "__array__"):
        operand = look_at_array(np.asarray(value))
    else:
        try:
            view = memoryview(value)
        except TypeError:
            return look_at_list(listed_of(value, name))
        operand = look_at_buffer(view, not isinstance(value, array.array))
        if isinstance(value, (bytes, bytearray)):
            operand = operand._replace(element=BYTES)
    if operand.shape == ():
        raise TypeError(f"{name} is a single number: an operand has one dimension at least")
    return operand


def listed_of(value: Any, name: str) -> list[Any]:
    if isinstance(value, (str, dict)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is of type {type(value).__name__}: not numbers")
    return list(value)


def retyped(raw: Raw, element: ElementType, name: str) -> Raw:
    """The same bytes as elements of another type, where that is what they were meant to be."""
    if raw.element is element:
        return raw
    of_words = raw.element.size == 2 and element.name in ("float16", "bfloat16")
    if not raw.is_untyped or (raw.element.size == 2 and not of_words):
        raise TypeError(
            f"{name} has elements of type {raw.element.name}, not {element.name}: convert one of "
            "them, so that what is rounded is yours to see"
        )
    if len(raw.data) % element.size:
        raise ValueError(f"{name}: {len(raw.data)} bytes are no whole {element.name} elements")
    shape = raw.shape if of_words else (len(raw.data) // element.size,)
    is_big = raw.is_big if of_words else False
    return Raw(element, shape, raw.data, is_big, False, raw.is_array)


def may_round_twice(kinds: set[type], element: ElementType) -> bool:
    """On its way through a float64 to less."""
    return int in kinds and element.code in ("e", "f")


def pack(listed: Listed, element: ElementType) -> Raw | None:
    """None when the numbers have to travel as JSON: they do not fit, or would be rounded twice."""
    values = listed.flat
    if listed.shape is None or Decimal in listed.kinds or not element.code:
        return None
    if element.is_complex:
        values = list(chain.from_iterable((value.real, value.imag) for value in values))
    if may_round_twice(listed.kinds, element) and any(
        type(value) is int and abs(value) > EXACT_INTEGER for value in values
    ):
        return None
    try:
        packed = struct.pack(f"={len(values)}{element.code}", *values)
    except (OverflowError, struct.error):
        return None
    return Raw(element, listed.shape, memoryview(packed), sys.byteorder == "big")


def swapped(raw: Raw) -> Raw:
    """A copy in the other byte order."""
    words = array.array({2: "H", 4: "I", 8: "Q"}[raw.element.part_size], raw.data.tobytes())
    words.byteswap()
    return raw._replace(data=bytes_of(words), is_big=not raw.is_big)


def type_of_lists(operands: Iterable[Operand]) -> ElementType:
    """What Python's numbers are: ints stay exact, one float makes all of them floats."""
    kinds = set().union(*(o.kinds for o in operands if isinstance(o, Listed)))
    if complex in kinds:
        return TYPES["complex128"]
    return TYPES["int64"] if kinds and kinds <= {int, bool} else TYPES["float64"]


UNTOLD = {
    WORDS: "words of 16 bits: say dtype='float16' or dtype='bfloat16'",
    BYTES: "bytes do not tell their type: say it, as in dtype='float32'",
}


def common_type(operands: Iterable[Operand]) -> ElementType:
    """The first array's that tells one; the other operand is held to it later."""
    elements = [operand.element for operand in operands if isinstance(operand, Raw)]
    for element in elements:
        if element not in UNTOLD:
            return element
    if elements:
        raise TypeError(UNTOLD[elements[0]])
    return type_of_lists(operands)


def operands_of(values: dict[str, Any], dtype: Any) -> tuple[ElementType, list[Operand]]:
    """Looks at operands by name, settles their one type, packs what can be packed."""
    seen = {name: look(value, name) for name, value in values.items()}
    element = type_named(dtype) if dtype is not None else common_type(seen.values())
    settled: list[Operand] = []
    for name, operand in seen.items():
        if isinstance(operand, Raw):
            settled.append(retyped(operand, element, name))
            continue
        if complex in operand.kinds and not element.is_complex:
            raise TypeError(f"{name} has complex elements, which {element.name} cannot hold")
        settled.append(pack(operand, element) or operand)
    return element, settled


def floats_of_bits(bits: Iterable[int], element_name: str) -> list[float]:
    """Numbers of a floating type from their bits."""
    words = list(bits)
    if element_name == "bfloat16":
        words = [word << 16 for word in words]
    integers, floats = {"float16": ("H", "e"), "float64": ("Q", "d")}.get(element_name, ("I", "f"))
    packed = struct.pack(f"={len(words)}{integers}", *words)
    return list(struct.unpack(f"={len(words)}{floats}", packed))


def numbers_of(raw: Raw) -> list[Any]:
    """The elements as Python's numbers, in order."""
    element = raw.element
    order = ">" if raw.is_big else "<"
    count = len(raw.data) // element.part_size
    numbers: list[Any] = list(struct.unpack(f"{order}{count}{element.code or 'H'}", raw.data))
    if element.name == "bfloat16":
        numbers = floats_of_bits(numbers, "bfloat16")
    if element.is_complex:
        return [complex(*pair) for pair in zip(numbers[::2], numbers[1::2])]
    return numbers


def nest(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """Elements in order as lists that nest as shape says; the element itself for ()."""
    if shape == ():
        return flat[0]
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)] if size else []
    return flat if flat or shape[0] == 0 else hollow(shape)


def hollow(shape: tuple[int, ...]) -> list[Any]:
    """Lists without an element, as for (2, 0)."""
    return [hollow(shape[1:]) for _ in range(shape[0])] if shape else []


def listed(operand: Operand) -> Any:
    """An operand as lists, for JSON."""
    if isinstance(operand, Listed):
        return operand.values
    return nest(numbers_of(operand), operand.shape)


def json_text(value: Any, element: ElementType) -> str:
    """Nested numbers as the service reads them: NaN and Infinity bare, a complex as a pair."""
    if isinstance(value, (list, tuple)):
        return f"[{','.join(json_text(item, element) for item in value)}]"
    if element.is_complex:
        return f"[{number_text(value.real)},{number_text(value.imag)}]"
    return number_text(value)


def number_text(value: Any) -> str:
    if isinstance(value, int):
        return str(int(value))  # a bool as well
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return str(value)
