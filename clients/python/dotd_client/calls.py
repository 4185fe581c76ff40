"""What both clients have in common: where the service is, how patient they are, and the calls.

Door: Calls, whose subclasses say how an answer is waited for. A call is made into a Request where
its answer is waited for too, so that what is wrong with its operands is told there.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .request import Options, Request, address_of, dot_request, get_request, pairs_request

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of typing since Python 3.11

TIMEOUT_S = 60.0
RETRIES = 3
POOL = 32  # idle connections that are kept

Answer = TypeVar("Answer")  # what brings a Result
Page = TypeVar("Page")  # what brings a page
Line = TypeVar("Line")  # a connection


class Calls(Generic[Answer, Page, Line]):
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
        """url: http://host:port, https with a context for other certificates than the system's.
        token: sent as a bearer. timeout: seconds for a call with all of its retries, of which there
        are so many at most."""
        self._address = address_of(url, token)
        self._timeout_s = timeout
        self._retries = retries
        self._pool_size = pool_size
        self._context = ssl_context
        if self._address.is_tls and ssl_context is None:
            self._context = ssl.create_default_context()
        self._idle: list[Line] = []  # append() and pop() need no lock

    def dot(
        self,
        a: Any,
        b: Any,
        *,
        dtype: Any = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> Answer:
        """The dot product along the last axis; leading axes broadcast as in numpy.vecdot.

        Options are accuracy, result_dtype, kernel, device, conjugate, diagnostics and id.
        """
        return self._result(dot_request, (a, b, dtype, options), timeout)

    def dot_pairs(
        self,
        pairs: Iterable[tuple[Any, Any]],
        *,
        dtype: Any = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> Answer:
        """One number for each pair of vectors, which may have any lengths, in one request."""
        return self._result(pairs_request, (pairs, dtype, options), timeout)

    def get(self, path: str, timeout: float | None = None) -> Page:
        """What a page says: get("/v1/devices"), "/v1/status", "/v1/limits", "/v1/kernels"."""
        return self._page(get_request, (path,), timeout)

    def _result(
        self, make: Callable[..., Request], call: tuple[Any, ...], timeout: float | None
    ) -> Answer:
        raise NotImplementedError

    def _page(
        self, make: Callable[..., Request], call: tuple[Any, ...], timeout: float | None
    ) -> Page:
        raise NotImplementedError
