"""The client for threads.

Door: Client. Any number of threads may share one; each call takes a connection of the pool for as
long as it lasts, or opens one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .calls import Calls
from .connection import Connection, SecureConnection, Silence
from .message import Body, Head
from .patience import Patience
from .request import Request
from .result import Result, json_of, result_of


class Client(Calls[Result, Any, Connection]):
    """Of threads; its settings are those of Calls.__init__."""

    _process = 0  # whose connections the idle ones are

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections. A call after this opens new ones."""
        while self._idle:
            self._idle.pop().close()

    def _result(
        self, make: Callable[..., Request], call: tuple[Any, ...], timeout: float | None
    ) -> Result:
        request = make(*call)
        head, body = self._answer(request, timeout)
        return result_of(head, body, request.lines.wants_arrays)

    def _page(
        self, make: Callable[..., Request], call: tuple[Any, ...], timeout: float | None
    ) -> Any:
        _, body = self._answer(make(*call), timeout)
        return json_of(body)

    def _answer(self, request: Request, timeout: float | None) -> tuple[Head, Body]:
        """The answer of status 200 that comes in the end."""
        patience = Patience(self._timeout_s if timeout is None else timeout, self._retries)
        while True:
            connection = self._connection(patience)
            was_kept = connection.was_kept
            try:
                head, body = self._exchange(connection, request, patience)
            except Silence as silence:
                pause_s = patience.after_silence(silence, was_kept)
            else:
                if head.status == 200:
                    return head, body
                pause_s = patience.after_refusal(head, body, was_kept)
            if pause_s > 0:
                time.sleep(pause_s)

    def _exchange(
        self, connection: Connection, request: Request, patience: Patience
    ) -> tuple[Head, Body]:
        """One try. The connection goes back to the pool, or ends."""
        is_whole = False
        try:
            head = request.head(self._address, patience.remaining())
            size = len(head) + request.lines.size
            is_sent = connection.send([head, *request.parts], size, patience)
            answer = connection.read_head(patience)
            body = connection.read_body(answer, patience)
            is_whole = is_sent and answer.keeps_alive and not connection.rest
        finally:
            if is_whole and len(self._idle) < self._pool_size:
                connection.was_kept = True
                connection.idle_s = time.monotonic()
                self._idle.append(connection)
            else:
                connection.close()
        return answer, body

    def _connection(self, patience: Patience) -> Connection:
        process = os.getpid()
        if self._process != process:  # after a fork: the parent goes on with those
            self._idle, self._process = [], process
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if connection.is_usable():
                return connection
            connection.close()
        if self._context is not None:
            return SecureConnection(self._address, patience, self._context)
        return Connection(self._address, patience)
