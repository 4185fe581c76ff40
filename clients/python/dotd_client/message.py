"""HTTP/1.1 answers, as far as a client of one service needs them, without a socket.

Own code because the standard library's parser of heads costs more than the rest of a call.
"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Union

from .errors import BadAnswer

Body = Union[bytes, bytearray]
HEAD_BYTES = 64 << 10  # the longest head that is read


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
        self._text, self._lower = text, text.lower()
        version, status = text[:8], text[9:12]
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit():
            raise BadAnswer(f"no answer of HTTP/1.1: {text[:80]!r}")
        self.status = int(status)
        coding = self.field(b"transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            raise BadAnswer(f"Transfer-Encoding {coding}")
        self.is_chunked = coding is not None
        self.size = None if self.is_chunked else self._content_length()
        wish = self.field(b"connection") or ("close" if version == b"HTTP/1.0" else "keep-alive")
        is_framed = self.is_chunked or self.size is not None
        self.keeps_alive = is_framed and wish.lower() != "close"

    def _content_length(self) -> int | None:
        text = self.field(b"content-length")
        if text is None:
            return 0 if self.status in (204, 304) else None
        if not (text.isascii() and text.isdigit()):
            raise BadAnswer(f"Content-Length {text}")
        return int(text)

    def field(self, name: bytes) -> str | None:
        """A header's value; name is in lower case. None when it is not there."""
        place = self._lower.find(b"\r\n" + name + b":")
        if place < 0:
            return None
        start = place + len(name) + 3
        end = self._lower.find(b"\r\n", start)
        return self._text[start : end if end >= 0 else None].strip().decode("latin-1")

    @property
    def content_type(self) -> str:
        return (self.field(b"content-type") or "").split(";", 1)[0].strip().lower()

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
        if not digits.isalnum():
            raise ValueError
        return int(digits, 16)
    except ValueError:
        raise BadAnswer(f"no size of a chunk: {line[:80]!r}") from None
