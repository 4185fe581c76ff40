"""A dot product's answer as Python's numbers.

Door: Result, and result_of() which reads it from either form of answer. What costs time is worked
out when it is asked for.
"""

from __future__ import annotations

import functools
import json
import math
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

from .elements import TYPES
from .errors import BadAnswer
from .message import Body, Head
from .operands import floats_of_bits, nest, numpy

FLOAT64 = struct.Struct("<d")
read_json = json.JSONDecoder().raw_decode  # json.loads() adds a third to its time
Number = Any  # float, int or complex; lists of them, or a NumPy array
Read = TypeVar("Read")
MISREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)


def flatten(value: Any) -> list[Any]:
    """The leaves of nested lists, in order."""
    flat = value if isinstance(value, list) else [value]
    while flat and isinstance(flat[0], list):
        flat = [item for row in flat for item in row]
    return flat


def read(part: Callable[[Result], Read]) -> Callable[[Result], Read]:
    """A part of an answer. One that is not there, or not as the service writes it, is told."""

    @functools.wraps(part)
    def get(result: Result) -> Read:
        try:
            return part(result)
        except MISREAD as error:
            told = f"an answer of status 200 whose {part.__name__} cannot be read: {error!r}"
            raise BadAnswer(told) from error

    return get


class Result:
    """value: a float, int or complex, exactly what the service computed; of a batch lists of them
    that nest as shape says, or a NumPy array when an operand was one.

    bits: the bits of each number as ints, nested likewise; of a complex number a pair. An integer
    beyond 64 bits has 192.
    error_bound: the exact sum is no farther away than this; of a batch the largest; inf when
    nothing is promised.
    timing: microseconds by stage, and their total.
    document: the answer as it came when that was JSON, as with integers and with diagnostics: it
    has each number's bound. Else empty.
    """

    __slots__ = ("document", "result_dtype", "_head", "_data", "_arrays", "_value")

    def __init__(
        self, document: Mapping[str, Any], dtype: str, head: Head, data: Body, arrays: bool
    ) -> None:
        self.document = document
        self.result_dtype = dtype
        self._head = head
        self._data = data  # empty with a document
        self._arrays = arrays
        self._value: Any = None

    def _said(self, name: str, header: bytes) -> str:
        return str(self.document[name] if self.document else self._head.field(header))

    @property
    @read
    def shape(self) -> tuple[int, ...]:
        if self.document:
            return tuple(self.document["shape"])
        text = self._head.field(b"dotd-shape")
        return tuple(map(int, text.split(","))) if text else ()

    @property
    @read
    def device(self) -> str:
        return self._said("device", b"dotd-device")

    @property
    @read
    def kernel(self) -> str:
        return self._said("kernel", b"dotd-kernel")

    @property
    @read
    def flags(self) -> tuple[str, ...]:
        if self.document:
            return tuple(self.document["flags"])
        text = self._head.field(b"dotd-flags")
        return tuple(text.split(",")) if text else ()

    @property
    @read
    def id(self) -> str | None:
        if self.document:
            said: str | None = self.document.get("id")
            return said
        text = self._head.field(b"dotd-id")
        return None if text is None else unquote(text)

    @property
    @read
    def error_bound(self) -> float:
        if self.document:
            bounds = flatten(self.document["error_bound"])
            return max((float("inf" if bound is None else bound) for bound in bounds), default=0.0)
        return float(self._head.field(b"dotd-error-bound") or "inf")

    @property
    @read
    def sum_abs(self) -> Any:
        """With diagnostics: the sum of magnitudes, nested as value is; None without."""
        return self.document.get("sum_abs")

    @property
    @read
    def condition(self) -> Any:
        """With diagnostics: sum_abs divided by the magnitude of the sum; None without."""
        return self.document.get("condition")

    @property
    @read
    def timing(self) -> dict[str, float]:
        if self.document:
            return dict(self.document["timing_us"])
        stages = {}
        for stage in (self._head.field(b"server-timing") or "").split(","):
            name, found, duration_ms = stage.strip().partition(";dur=")
            if found:
                stages[name] = float(duration_ms) * 1000
        return stages

    def _words(self) -> list[int]:
        """The bits of each number, two a complex one."""
        element = TYPES[self.result_dtype]
        count = math.prod(self.shape) * (2 if element.is_complex else 1)
        if self.document:
            words = [int(text, 16) for text in flatten(self.document["bits"])]
            if len(words) != count:
                raise ValueError(f"{len(words)} of {count}")
            return words
        code = {2: "H", 4: "I", 8: "Q"}[element.part_size]
        return list(struct.unpack(f"<{count}{code}", self._data))

    @property
    @read
    def bits(self) -> Any:
        words = self._words()
        if TYPES[self.result_dtype].is_complex:
            return nest(list(zip(words[::2], words[1::2])), self.shape)
        return nest(words, self.shape)

    @property
    @read
    def value(self) -> Number:
        if self._value is None:
            if self._arrays and numpy() is not None and self.shape != ():
                self._value = self._array()
            elif len(self._data) == 8 and self.result_dtype == "float64" and self.shape == ():
                (self._value,) = FLOAT64.unpack(self._data)
            else:
                self._value = self._numbers()
        return self._value

    def _numbers(self) -> Number:
        element = TYPES[self.result_dtype]
        if element.is_integer:
            return self.document["result"]
        part = {4: "float32", 8: "float64"}[element.part_size] if element.is_complex else ""
        numbers: list[Any] = floats_of_bits(self._words(), part or element.name)
        if element.is_complex:
            numbers = [complex(*pair) for pair in zip(numbers[::2], numbers[1::2])]
        return nest(numbers, self.shape)

    def _array(self) -> Any:
        """bfloat16 becomes ml_dtypes' where that is loaded, float32 elsewhere."""
        np = numpy()
        element = TYPES[self.result_dtype]
        if element.is_integer:
            whole = flatten(self.document["result"])
            is_wide = any(not -(2**63) <= number < 2**63 for number in whole)
            return np.array(whole, object if is_wide else np.int64).reshape(self.shape)
        if element.name == "bfloat16":
            words = np.array(self._words(), np.uint16)
            ml_dtypes = sys.modules.get("ml_dtypes")
            if ml_dtypes is not None:
                return words.view(ml_dtypes.bfloat16).reshape(self.shape)
            return (words.astype(np.uint32) << 16).view(np.float32).reshape(self.shape)
        if self.document:
            parts = np.array(self._words(), f"u{element.part_size}")
            return parts.view(element.name).reshape(self.shape)
        code = f"<{'c' if element.is_complex else 'f'}{element.size}"
        return np.frombuffer(self._data, code).astype(element.name).reshape(self.shape)

    def __repr__(self) -> str:
        return f"<Result {self.value!r} of {self.device}, error_bound {self.error_bound!r}>"


def result_of(head: Head, body: Body, arrays: bool) -> Result:
    """Reads an answer with status 200."""
    if head.is_binary:
        dtype = head.field(b"dotd-dtype")
        document, data = {}, body
    else:
        document, data = json_of(body), b""
        if not isinstance(document, dict) or "bits" not in document:
            raise BadAnswer("an answer of status 200 is not one of dotd's")
        dtype = document.get("result_dtype")
    if dtype not in TYPES:
        raise BadAnswer(f"results of a type that is not known: {dtype}")
    return Result(document, dtype, head, data, arrays)


def json_of(body: Body) -> Any:
    try:
        return read_json(body.decode())[0]
    except (RecursionError, ValueError) as error:
        raise BadAnswer(f"an answer of status 200 is not JSON: {error}") from error
