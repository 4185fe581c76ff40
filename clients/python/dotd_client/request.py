"""A call as it goes over the wire: what both clients send, without a socket.

Door: dot_request(), pairs_request(), get_request(). A Request may be sent again as often as need
be: its parts are buffers, never iterators.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Optional, TypedDict
from urllib.parse import quote, urlencode, urlsplit

from .alike import Packer, outline, packer_of
from .elements import TYPES, ElementType, type_named
from .message import BINARY
from .operands import Buffer, Listed, Operand, Raw, json_text, listed, operands_of, swapped

Shapes = tuple[tuple[int, ...], tuple[int, ...]]
JSON = "application/json"
KEPT = 256  # kinds of calls that are remembered


class Options(TypedDict, total=False):
    """What every call may say, by the service's own names; None is left out."""

    accuracy: Optional[str]
    result_dtype: Any
    kernel: Optional[str]
    device: Optional[str]
    conjugate: bool
    diagnostics: bool
    id: Optional[str]


FLAGS = ("conjugate", "diagnostics")


class Address(NamedTuple):
    """Where the service is."""

    host: str
    port: int
    is_tls: bool
    prefix: bytes  # of every path
    headers: bytes  # the end of a request's first line, and lines that every request has


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
    headers = f" HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: dotd-client\r\n"
    if token is not None:
        headers += f"Authorization: Bearer {token}\r\n"
    port = parts.port or (443 if is_tls else 80)
    prefix = parts.path.rstrip("/").encode()
    return Address(parts.hostname, port, is_tls, prefix, headers.encode())


class Lines(NamedTuple):
    """What is alike in all calls of one kind."""

    target: bytes  # path and query, but for what is left of the timeout
    headers: bytes  # lines of its own, and the empty one
    size: int  # of the body
    is_page: bool = False
    wants_arrays: bool = False  # batches come back as NumPy arrays


class Request:
    __slots__ = ("lines", "parts")

    def __init__(self, lines: Lines, parts: Sequence[Buffer]) -> None:
        self.lines = lines
        self.parts = parts

    def head(self, address: Address, timeout_s: float) -> bytes:
        target, headers, _, is_page, _ = self.lines
        if is_page:
            return b"GET %b%b%b%b" % (address.prefix, target, address.headers, headers)
        left_ms = max(1, int(timeout_s * 1000))
        told = (address.prefix, target, left_ms, address.headers, headers)
        return b"POST %b%b&timeout_ms=%d%b%b" % told


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
        if name in FLAGS:  # 1 and NumPy's True equal True, and so find what was kept for it
            value = "true" if value else None
        if value is not None:
            said.append((name, str(value)))
    return said


def headers_of(
    body_type: str, element: ElementType, options: Mapping[str, Any], size: int
) -> bytes:
    """Results come as bytes, which is the shortest and exact, but as JSON where that says more:
    integers, which may have more than 64 bits each, and diagnostics of each number."""
    of_integers = element.is_integer and options.get("result_dtype") is None
    accept = JSON if of_integers or options.get("diagnostics", False) else BINARY
    lines = f"Content-Type: {body_type}\r\nAccept: {accept}\r\nContent-Length: {size}\r\n\r\n"
    return lines.encode()


def target_of(said: Sequence[tuple[str, str]]) -> bytes:
    return ("/v1/dot?" + urlencode(said, safe=",", quote_via=quote)).encode()  # + is itself there


@lru_cache(maxsize=KEPT)  # building them costs more than all the rest of a call
def raw_lines(
    name: str,
    is_big: bool,
    shapes: Shapes | None,
    size: int,
    options: tuple[tuple[str, Any], ...],
    wants_arrays: bool,
) -> Lines:
    """Of a body of raw elements, size bytes."""
    said = [("dtype", wire_name(TYPES[name], is_big)), *said_of(options)]
    if shapes is not None:
        said += [("shape_a", shape_text(shapes[0])), ("shape_b", shape_text(shapes[1]))]
    headers = headers_of(BINARY, TYPES[name], dict(options), size)
    return Lines(target_of(said), headers, size, False, wants_arrays)


def raw_request(
    a: Raw, b: Raw, options: Options, parts: list[Buffer] | None, wants_arrays: bool
) -> Request:
    """parts: where the elements lie; None: as one piece each."""
    element = a.element
    if a.is_big != b.is_big or (a.is_big and not element.code):  # >bfloat16 has no name
        a, b = (swapped(raw) if raw.is_big else raw for raw in (a, b))
    parts = [a.data, b.data] if parts is None else parts
    shapes = None if len(a.shape) == 1 and a.shape == b.shape else (a.shape, b.shape)
    said, size = tuple(options.items()), sum(map(len, parts))
    return Request(raw_lines(element.name, a.is_big, shapes, size, said, wants_arrays), parts)


def json_request(element: ElementType, text: str, options: Options, wants_arrays: bool) -> Request:
    target = target_of([("dtype", element.name), *said_of(options.items())])
    body = text.encode()
    headers = headers_of(JSON, element, options, len(body))
    return Request(Lines(target, headers, len(body), False, wants_arrays), [body])


class Plan(NamedTuple):
    """How calls go out whose operands have certain outlines, and whose options are the same."""

    lines: Lines
    pack_a: Packer
    pack_b: Packer


plans: dict[Hashable, Plan] = {}


def make_plan(key: Hashable, lines: Lines, pack_a: Packer | None, pack_b: Packer | None) -> None:
    if pack_a is None or pack_b is None:
        return
    if len(plans) >= KEPT:
        plans.clear()
    plans[key] = Plan(lines, pack_a, pack_b)


def dot_request(a: Any, b: Any, dtype: Any, options: Options) -> Request:
    outlines = outline(a), outline(b)
    key = (outlines, dtype, *options.items())
    plan = plans.get(key)
    if plan is not None:
        try:
            return Request(plan.lines, [plan.pack_a(a), plan.pack_b(b)])
        except (OverflowError, struct.error):
            pass  # which number does not fit is for the service to say
    element, (left, right) = operands_of({"a": a, "b": b}, dtype)
    wants_arrays = left.is_array or right.is_array
    if isinstance(left, Raw) and isinstance(right, Raw):
        request = raw_request(left, right, options, None, wants_arrays)
        if None not in outlines:
            make_plan(key, request.lines, packer_of(a, left), packer_of(b, right))
        return request
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


def paired(rows: Sequence[Operand]) -> list[Buffer] | None:
    """Vectors of any lengths, those of all a before those of all b, as a body of pairs: how many,
    how long each is, and their elements. None when they are not that."""
    half = len(rows) // 2
    raws = [row for row in rows if isinstance(row, Raw) and len(row.shape) == 1]
    if not raws or len(raws) < len(rows):
        return None
    raws = [swapped(row) if row.is_big else row for row in raws]
    lengths = [row.shape[0] for row in raws[:half]]
    if lengths != [row.shape[0] for row in raws[half:]]:
        return None
    turns = (row.data for pair in zip(raws, raws[half:]) for row in pair)
    return [struct.pack(f"<{half + 1}Q", half, *lengths), *turns]


def sides_of(pairs: Iterable[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """The a of all pairs, and the b."""
    sides: tuple[list[Any], list[Any]] = [], []
    for i, pair in enumerate(pairs):
        try:
            a, b = pair
        except (TypeError, ValueError):
            raise TypeError(f"pair {i} is not two vectors") from None
        sides[0].append(a)
        sides[1].append(b)
    return sides


def pairs_request(pairs: Iterable[tuple[Any, Any]], dtype: Any, options: Options) -> Request:
    values = {
        f"{name} of pair {i}": vector
        for name, side in zip("ab", sides_of(pairs))
        for i, vector in enumerate(side)
    }
    element, operands = operands_of(values, dtype)
    wants_arrays = any(operand.is_array for operand in operands)
    matrix = stacked(operands)
    if matrix is not None:
        parts: list[Buffer] = [row.data for row in operands if isinstance(row, Raw)]
        return raw_request(matrix, matrix, options, parts, wants_arrays)
    body = paired(operands)
    if body is not None:
        said, size = [("dtype", element.name), ("layout", "pairs")], sum(map(len, body))
        target = target_of([*said, *said_of(options.items())])
        headers = headers_of(BINARY, element, options, size)
        return Request(Lines(target, headers, size, False, wants_arrays), body)
    texts = [json_text(listed(operand), element) for operand in operands]
    rows = (f'{{"a":{a},"b":{b}}}' for a, b in zip(texts, texts[len(texts) // 2 :]))
    return json_request(element, f'{{"pairs":[{",".join(rows)}]}}', options, wants_arrays)


def get_request(path: str) -> Request:
    if not path.startswith("/") or not is_bare(path):
        raise ValueError(f"{path!r} is no path of the service")
    return Request(Lines(path.encode(), f"Accept: {JSON}\r\n\r\n".encode(), 0, True), ())
