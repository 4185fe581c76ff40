"""HTTP/1.1 answers, as far as a client of one service needs them, without a socket.

Own code because the standard library's parser of heads costs more than the rest of a call.
"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Union

from .errors import BadAnswer

BINARY = "application/octet-stream"
Body = Union[bytes, bytearray]
HEAD_BYTES = 64 << 10  # the longest head that is read
SIZE_DIGITS = 15  # of a body or, hexadecimal, a chunk: more fit no memory


class Head:
    """Of an answer. Headers are looked for when they are asked for: most never are, and a
    dictionary of all of them costs more than the few that are."""

    __slots__ = ("status", "size", "is_chunked", "keeps_alive", "_text", "_lower")

    status: int
    size: int | None  # of the body; None: to the end of the connection, unless chunked
    is_chunked: bool
    keeps_alive: bool

    def __init__(self, text: bytes) -> None:
        """text ends before the empty line."""
        self._text = text
        self._lower = lower = text.lower()
        if not text.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")) or not text[9:12].isdigit():
            raise BadAnswer(f"no answer of HTTP/1.1: {text[:80]!r}")
        self.status = int(text[9:12])
        self.size = None
        self.is_chunked = lower.find(b"\r\ntransfer-encoding:") >= 0
        if self.is_chunked:
            coding = self.field(b"transfer-encoding") or ""
            if coding.lower() != "chunked":
                raise BadAnswer(f"Transfer-Encoding {coding}")
        else:
            self.size = self._content_length()
        is_framed = self.is_chunked or self.size is not None
        if lower.find(b"\r\nconnection:") >= 0:
            self.keeps_alive = is_framed and (self.field(b"connection") or "").lower() != "close"
        else:
            self.keeps_alive = is_framed and text.startswith(b"HTTP/1.1")

    def _content_length(self) -> int | None:
        start = self._lower.find(b"\r\ncontent-length:") + 17
        if start < 17:
            return 0 if self.status in (204, 304) else None
        digits = self._text[start:].split(b"\r\n", 1)[0].strip()
        if not digits.isdigit() or len(digits) > SIZE_DIGITS:
            raise BadAnswer(f"Content-Length {digits[:80]!r}")
        return int(digits)

    def field(self, name: bytes) -> str | None:
        """A header's value; name is in lower case. None when it is not there."""
        place = self._lower.find(b"\r\n" + name + b":")
        if place < 0:
            return None
        start = place + len(name) + 3
        end = self._lower.find(b"\r\n", start)
        return self._text[start : end if end >= 0 else None].strip().decode("latin-1")

    @property
    def is_binary(self) -> bool:
        if self._lower.find(b"\r\ncontent-type: application/octet-stream\r\n") >= 0:
            return True  # as the service writes it
        return (self.field(b"content-type") or "").split(";", 1)[0].strip().lower() == BINARY

    @property
    def retry_after_s(self) -> float | None:
        """Seconds, or what is left until a date; None when nothing is said or understood."""
        text = self.field(b"retry-after") or ""
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except ValueError:
            return None


def chunk_size(line: bytes) -> int:
    """Of the chunk that a line begins; what may follow a semicolon is of no concern."""
    digits = line.split(b";", 1)[0].strip()
    try:
        if not digits.isalnum() or len(digits) > SIZE_DIGITS:
            raise ValueError
        return int(digits, 16)
    except ValueError:
        raise BadAnswer(f"no size of a chunk: {line[:80]!r}") from None
