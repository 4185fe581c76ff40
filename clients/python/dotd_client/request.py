"""A call as it goes over the wire: what both clients send, without a socket.

Door: dot_request(), pairs_request(), get_request(). A Request may be sent again as often as need
be: its parts are buffers, never iterators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Optional, TypedDict, Union
from urllib.parse import quote, urlencode, urlsplit

from .elements import TYPES, ElementType, type_named
from .operands import Listed, Operand, Raw, json_text, listed, operands_of, swapped

Shapes = tuple[tuple[int, ...], tuple[int, ...]]
Buffer = Union[bytes, memoryview]
BINARY = "application/octet-stream"
JSON = "application/json"


class Options(TypedDict, total=False):
    """What every call may say, by the service's own names; None and False are left out."""

    accuracy: Optional[str]
    result_dtype: Any
    kernel: Optional[str]
    device: Optional[str]
    conjugate: bool
    diagnostics: bool
    id: Optional[str]


class Address(NamedTuple):
    """Where the service is."""

    host: str
    port: int
    is_tls: bool
    prefix: str  # of every path
    headers: str  # lines that every request has


def is_bare(text: str) -> bool:
    """Whether text may stand in a head: visible ASCII characters, one at least."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def address_of(url: str, token: str | None) -> Address:
    parts = urlsplit(url if "//" in url else "//" + url, scheme="http")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url} is no address like http://127.0.0.1:8080")
    if parts.query or parts.fragment or parts.username or not is_bare(url):
        raise ValueError(f"{url}: a host, a port and a path are all that an address may have")
    if token is not None and not is_bare(token):
        raise ValueError("a token is made of visible ASCII characters")
    is_tls = parts.scheme == "https"
    headers = f"Host: {parts.netloc}\r\nUser-Agent: dotd-client\r\n"
    if token is not None:
        headers += f"Authorization: Bearer {token}\r\n"
    port = parts.port or (443 if is_tls else 80)
    return Address(parts.hostname, port, is_tls, parts.path.rstrip("/"), headers)


class Request(NamedTuple):
    target: str  # path and query, but for timeout_ms
    headers: str  # lines of its own
    parts: Sequence[Buffer]
    size: int  # of all parts
    takes_timeout: bool = True
    wants_arrays: bool = False  # batches come back as NumPy arrays

    def head(self, address: Address, timeout_s: float) -> bytes:
        target = self.target
        if self.takes_timeout:
            target = f"{target}&timeout_ms={max(1, int(timeout_s * 1000))}"
        verb = "POST" if self.takes_timeout else "GET"
        return (
            f"{verb} {address.prefix}{target} HTTP/1.1\r\n{address.headers}{self.headers}\r\n"
        ).encode()


def wire_name(element: ElementType, is_big: bool) -> str:
    """NumPy's code is how the service is told of the other byte order."""
    if not is_big:
        return element.name
    letter = "c" if element.is_complex else "i" if element.is_integer else "f"
    return f">{letter}{element.size}"


def shape_text(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape))


def said_of(options: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Options as a query says them."""
    said: list[tuple[str, str]] = []
    for name, value in options:
        if name not in Options.__annotations__:
            raise TypeError(f"no option {name}; there are {', '.join(Options.__annotations__)}")
        if name == "result_dtype" and value is not None:
            value = type_named(value).name
        if value is not None and value is not False:
            said.append((name, "true" if value is True else str(value)))
    return said


def headers_of(body_type: str, element: ElementType, options: Mapping[str, Any]) -> str:
    """Results come as bytes, which is the shortest and exact, but as JSON where that says more:
    integers, which may have more than 64 bits each, and diagnostics of each number."""
    of_integers = element.is_integer and options.get("result_dtype") is None
    accept = JSON if of_integers or options.get("diagnostics", False) else BINARY
    return f"Content-Type: {body_type}\r\nAccept: {accept}\r\n"


@lru_cache(maxsize=256)  # building them costs more than all the rest of a call
def raw_lines(
    name: str, is_big: bool, shapes: Shapes | None, options: tuple[tuple[str, Any], ...]
) -> tuple[str, str]:
    """The target and the headers of a body of raw elements."""
    said = [("dtype", wire_name(TYPES[name], is_big)), *said_of(options)]
    if shapes is not None:
        said += [("shape_a", shape_text(shapes[0])), ("shape_b", shape_text(shapes[1]))]
    return target_of(said), headers_of(BINARY, TYPES[name], dict(options))


def target_of(said: Sequence[tuple[str, str]]) -> str:
    return "/v1/dot?" + urlencode(said, safe=",", quote_via=quote)  # + is itself there


def raw_request(
    a: Raw, b: Raw, options: Options, parts: list[Buffer] | None, wants_arrays: bool
) -> Request:
    """parts: where the elements lie; None: as one piece each."""
    element = a.element
    if a.is_big != b.is_big or (a.is_big and not element.code):  # >bfloat16 has no name
        a, b = (swapped(raw) if raw.is_big else raw for raw in (a, b))
    shapes = None if len(a.shape) == 1 and a.shape == b.shape else (a.shape, b.shape)
    target, headers = raw_lines(element.name, a.is_big, shapes, tuple(options.items()))
    return finished(target, headers, [a.data, b.data] if parts is None else parts, wants_arrays)


def json_request(element: ElementType, body: str, options: Options, wants_arrays: bool) -> Request:
    target = target_of([("dtype", element.name), *said_of(options.items())])
    headers = headers_of(JSON, element, options)
    return finished(target, headers, [body.encode()], wants_arrays)


def finished(target: str, headers: str, parts: list[Buffer], wants_arrays: bool) -> Request:
    size = sum(map(len, parts))
    headers = f"{headers}Content-Length: {size}\r\n"
    return Request(target, headers, parts, size, True, wants_arrays)


def dot_request(a: Any, b: Any, dtype: Any, options: Options) -> Request:
    element, (left, right) = operands_of({"a": a, "b": b}, dtype)
    wants_arrays = left.is_array or right.is_array
    if isinstance(left, Raw) and isinstance(right, Raw):
        return raw_request(left, right, options, None, wants_arrays)
    texts = [json_text(listed(operand), element) for operand in (left, right)]
    return json_request(element, f'{{"a":{texts[0]},"b":{texts[1]}}}', options, wants_arrays)


def stacked(rows: Sequence[Operand]) -> Raw | None:
    """Vectors of one length, those of all a before those of all b, as the halves of a body: what
    one half is. None when they are not that."""
    if not rows or isinstance(rows[0], Listed):
        return None
    shape = rows[0].shape
    for row in rows:
        if isinstance(row, Listed) or row.is_big or row.shape != shape or len(shape) != 1:
            return None
    return rows[0]._replace(shape=(len(rows) // 2, *shape))


def pairs_request(pairs: Sequence[tuple[Any, Any]], dtype: Any, options: Options) -> Request:
    values = {
        f"{name} of pair {i}": pair[side]
        for side, name in enumerate("ab")
        for i, pair in enumerate(pairs)
    }
    element, operands = operands_of(values, dtype)
    wants_arrays = any(operand.is_array for operand in operands)
    matrix = stacked(operands)
    if matrix is not None:
        parts: list[Buffer] = [row.data for row in operands if isinstance(row, Raw)]
        return raw_request(matrix, matrix, options, parts, wants_arrays)
    texts = [json_text(listed(operand), element) for operand in operands]
    rows = (f'{{"a":{a},"b":{b}}}' for a, b in zip(texts, texts[len(pairs) :]))
    return json_request(element, f'{{"pairs":[{",".join(rows)}]}}', options, wants_arrays)


def get_request(path: str) -> Request:
    if not path.startswith("/") or not is_bare(path):
        raise ValueError(f"{path!r} is no path of the service")
    return Request(path, f"Accept: {JSON}\r\n", (), 0, takes_timeout=False)
