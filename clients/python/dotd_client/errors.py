"""What a call raises when it brings no result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

TEXT_SHOWN = 500  # characters of an answer that is no problem document


class DotdError(Exception):
    """Everything that this package raises about the service; wrong arguments are TypeError and
    ValueError."""


class Unreachable(DotdError, ConnectionError):
    """No connection, or it ended before the answer did."""


class DeadlineExceeded(DotdError, TimeoutError):
    """The call's timeout passed."""


class BadAnswer(DotdError):
    """What came is not an answer of this service."""


class Problem(DotdError):
    """The service refused; its problem document (RFC 9457) says why.

    Fields that the document does not have are None; document is all of it as it came.
    """

    def __init__(
        self, status: int, document: Mapping[str, Any], retry_after_s: float | None = None
    ) -> None:
        self.status = status
        self.document = dict(document)
        self.retry_after_s = retry_after_s
        self.type: str = str(document.get("type", "about:blank"))
        self.title: str = str(document.get("title", ""))
        self.detail: str = str(document.get("detail", ""))
        self.pointer: str | None = document.get("pointer")
        self.offset: int | None = document.get("offset")
        self.limit: int | None = document.get("limit")
        self.setting: str | None = document.get("setting")
        self.id: str | None = document.get("id")
        super().__init__(status, self.document, retry_after_s)

    @property
    def name(self) -> str:
        """The last part of type: length-mismatch."""
        return self.type.rsplit("/", 1)[-1]

    def __str__(self) -> str:
        where = f" (at {self.pointer})" if self.pointer is not None else ""
        return f"{self.status} {self.name}: {self.detail or self.title}{where}"


class LateProblem(Problem, DeadlineExceeded):
    """A problem that is the service's word for a deadline that passed: status 504."""


def problem_of(status: int, body: bytes | bytearray, retry_after_s: float | None) -> Problem:
    """The problem that an answer is; one of a proxy, say, in its own words."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"detail": body.decode("utf-8", "replace")[:TEXT_SHOWN].strip()}
    kind = LateProblem if status == 504 else Problem
    return kind(status, document, retry_after_s)
