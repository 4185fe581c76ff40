"""How long a call waits, and when it tries again. No clock is slept on here.

A dot product changes nothing at the service, so any call may be repeated. It is when the service
says when to come back (429 and 503 with Retry-After), and when a connection ends before a byte of
the answer came, as happens when a kept connection meets a restart.
"""

from __future__ import annotations

import time

from .errors import DeadlineExceeded, problem_of
from .message import Body, Head

LONGEST_S = 20 * 86400.0  # a call may take; poll() counts milliseconds in 31 bits
PAUSE_S = 0.05  # before a new connection, when the last one ended at once; doubled each time


class Patience:
    """Of one call: until when, and how many more tries."""

    __slots__ = ("timeout_s", "end_s", "left", "pause_s")

    def __init__(self, timeout_s: float, retries: int) -> None:
        self.timeout_s = timeout_s
        self.end_s = time.monotonic() + min(timeout_s, LONGEST_S)
        self.left = retries
        self.pause_s = PAUSE_S

    def remaining(self) -> float:
        left_s = self.end_s - time.monotonic()
        if left_s <= 0:
            raise self.late()
        return left_s

    def late(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"no answer within {self.timeout_s:g} s")

    def after_refusal(self, head: Head, body: Body, was_kept: bool) -> float:
        """How long to wait before the next try; raises the problem when there is none."""
        problem = problem_of(head.status, body, head.retry_after_s)
        if problem.status == 408 and was_kept:
            return 0.0  # said to the silence on that connection, before this call
        pause_s = problem.retry_after_s
        if problem.status not in (429, 503) or pause_s is None:
            raise problem
        if self.left == 0 or pause_s >= self.end_s - time.monotonic():
            raise problem
        self.left -= 1
        return pause_s

    def after_silence(self, error: OSError, was_kept: bool) -> float:
        """Likewise after a connection that ended before a byte; a kept one's end is no failure."""
        if was_kept:
            return 0.0
        if self.left == 0 or self.pause_s >= self.end_s - time.monotonic():
            raise error
        self.left -= 1
        pause_s, self.pause_s = self.pause_s, self.pause_s * 2
        return pause_s
