"""The client for threads.

Door: Client. Any number of threads may share one; each call takes a connection of the pool for as
long as it lasts, or opens one.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .connection import Connection, SecureConnection, Silence
from .errors import problem_of
from .message import Body, Head
from .patience import Patience
from .request import Options, Request, address_of, dot_request, get_request, pairs_request
from .result import Result, json_of, result_of

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of typing since Python 3.11

TIMEOUT_S = 60.0
RETRIES = 3
POOL = 32  # idle connections that are kept


class Client:
    """url: http://host:port, https with a context for other certificates than the system's.
    token: sent as a bearer. timeout: seconds for a call with all of its retries, of which there
    are so many at most."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        token: str | None = None,
        timeout: float = TIMEOUT_S,
        *,
        retries: int = RETRIES,
        pool_size: int = POOL,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._address = address_of(url, token)
        self._timeout_s = timeout
        self._retries = retries
        self._pool_size = pool_size
        self._context = ssl_context
        if self._address.is_tls and ssl_context is None:
            self._context = ssl.create_default_context()
        self._idle: list[Connection] = []  # append() and pop() need no lock
        self._process = os.getpid()  # whose connections these are

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

    def dot(
        self,
        a: Any,
        b: Any,
        *,
        dtype: Any = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """The dot product along the last axis; leading axes broadcast as in numpy.vecdot.

        Options are accuracy, result_dtype, kernel, device, conjugate, diagnostics and id.
        """
        return self._result(dot_request(a, b, dtype, options), timeout)

    def dot_pairs(
        self,
        pairs: Sequence[tuple[Any, Any]],
        *,
        dtype: Any = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """One number for each pair of vectors, which may have any lengths, in one request."""
        return self._result(pairs_request(pairs, dtype, options), timeout)

    def get(self, path: str, timeout: float | None = None) -> Any:
        """What a page says: get("/v1/devices"), "/v1/status", "/v1/limits", "/v1/kernels"."""
        _, body = self._answer(get_request(path), timeout)
        return json_of(body)

    def _result(self, request: Request, timeout: float | None) -> Result:
        head, body = self._answer(request, timeout)
        return result_of(head, body, request.wants_arrays)

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
                problem = problem_of(head.status, body, head.retry_after_s)
                pause_s = patience.after_problem(problem, was_kept)
            if pause_s > 0:
                time.sleep(pause_s)

    def _exchange(
        self, connection: Connection, request: Request, patience: Patience
    ) -> tuple[Head, Body]:
        """One try. The connection goes back to the pool, or ends."""
        is_whole = False
        try:
            head = request.head(self._address, patience.remaining())
            is_sent = connection.send([head, *request.parts], len(head) + request.size, patience)
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
        if self._process != os.getpid():  # after a fork: the parent goes on with those
            self._idle, self._process = [], os.getpid()
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
