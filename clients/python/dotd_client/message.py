"""HTTP/1.1 answers, as far as a client of one service needs them, without a socket.

Own code because the standard library's parser of heads costs more than the rest of a call.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple, Union

from .errors import BadAnswer

Body = Union[bytes, bytearray]
HEAD_BYTES = 64 << 10  # the longest head that is read


class Head(NamedTuple):
    status: int
    headers: Mapping[str, str]  # by names in lower case
    keeps_alive: bool

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").split(";", 1)[0].strip().lower()

    @property
    def is_chunked(self) -> bool:
        return "transfer-encoding" in self.headers

    @property
    def size(self) -> int | None:
        """Of the body; None: it goes on to the end of the connection, unless it is chunked."""
        if self.status in (204, 304):
            return 0
        text = self.headers.get("content-length")
        if text is None or self.is_chunked:
            return None
        if not (text.isascii() and text.isdigit()):
            raise BadAnswer(f"Content-Length {text}")
        return int(text)

    @property
    def retry_after_s(self) -> float | None:
        """Seconds, or what is left until a date; None when nothing is said or understood."""
        text = self.headers.get("retry-after", "")
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except ValueError:
            return None


def parse_head(head: bytes) -> Head:
    """head ends before the empty line."""
    lines = head.decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not rest[:3].isdigit():
        raise BadAnswer(f"no answer of HTTP/1.1: {lines[0][:80]!r}")
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadAnswer(f"a header without a colon: {line[:80]!r}")
        headers[name.lower()] = value.strip()
    wish = headers.get("connection", "").lower()
    keeps_alive = wish != "close" if version == "HTTP/1.1" else wish == "keep-alive"
    coding = headers.get("transfer-encoding", "chunked").lower()
    if coding != "chunked":
        raise BadAnswer(f"Transfer-Encoding {coding}")
    framed = "transfer-encoding" in headers or "content-length" in headers
    return Head(int(rest[:3]), headers, keeps_alive and framed)


def chunk_size(line: bytes) -> int:
    """Of the chunk that a line begins; what may follow a semicolon is of no concern."""
    digits = line.split(b";", 1)[0].strip()
    try:
        if not digits.isalnum():
            raise ValueError
        return int(digits, 16)
    except ValueError:
        raise BadAnswer(f"no size of a chunk: {line[:80]!r}") from None
