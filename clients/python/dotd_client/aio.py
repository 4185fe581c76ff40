"""The client for asyncio: the calls of Client, awaited.

Door: AsyncClient, of one event loop. Calls run side by side, each on a connection of its own.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from .client import POOL, RETRIES, TIMEOUT_S
from .connection import Silence
from .errors import BadAnswer, DotdError, Unreachable, problem_of
from .message import HEAD_BYTES, Body, Head, chunk_size
from .patience import Patience
from .request import Buffer, Options, Request, address_of, dot_request, get_request, pairs_request
from .result import Result, json_of, result_of

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of typing since Python 3.11

PIECE = 256 << 10  # written before there is a wait for room: what asyncio may have to copy
AT_ONCE = 64 << 10  # a body up to this is written without an ear for an early answer

Kind = TypeVar("Kind")


class Stream:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.was_kept = False

    def close(self) -> None:
        self.writer.transport.abort()  # what is unsent is of no use any more

    def is_usable(self) -> bool:
        return not self.reader.at_eof() and not self.writer.is_closing()

    async def send(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            with memoryview(buffer) as view:
                for start in range(0, len(view), PIECE):
                    self.writer.write(view[start : start + PIECE])
                    await self.writer.drain()

    async def read_head(self) -> Head:
        while True:
            try:
                text = await self.reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as error:
                kind = Unreachable if error.partial else Silence
                raise kind("the connection ended before the answer") from error
            except asyncio.LimitOverrunError:
                raise BadAnswer(f"an answer's head of more than {HEAD_BYTES} bytes") from None
            except OSError as error:
                raise Silence(str(error)) from error
            head = Head(text[:-4])
            if head.status >= 200:
                return head

    async def read_body(self, head: Head) -> bytes:
        try:
            if head.is_chunked:
                return await self._read_chunks()
            if head.size is None:
                return await self.reader.read()
            return await self.reader.readexactly(head.size)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Unreachable(f"within an answer: {error}") from error

    async def _read_chunks(self) -> bytes:
        chunks = []
        while size := chunk_size(await self.reader.readuntil(b"\n")):
            chunks.append(await self.reader.readexactly(size))
            await self.reader.readuntil(b"\n")
        while (await self.reader.readuntil(b"\n")).strip():
            pass  # trailers
        return b"".join(chunks)

    async def answer(self) -> tuple[Head, Body]:
        head = await self.read_head()
        return head, await self.read_body(head)

    async def exchange(self, head: bytes, request: Request) -> tuple[Head, Body, bool]:
        """The answer, and whether the connection may be used again."""
        if request.size <= AT_ONCE:
            self.writer.write(b"".join([head, *request.parts]))
            answer, body = await self.answer()
            return answer, body, answer.keeps_alive
        sending = asyncio.create_task(self.send([head, *request.parts]))
        try:
            answer, body = await self.answer()
            is_sent = sending.done() and sending.exception() is None
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return answer, body, answer.keeps_alive and is_sent


class AsyncClient:
    """As Client."""

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
        self._idle: list[Stream] = []

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes idle connections. A call after this opens new ones."""
        closing, self._idle = self._idle, []
        for stream in closing:
            stream.close()
        await asyncio.gather(*(s.writer.wait_closed() for s in closing), return_exceptions=True)

    async def dot(
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
        return await self._result(dot_request(a, b, dtype, options), timeout)

    async def dot_pairs(
        self,
        pairs: Sequence[tuple[Any, Any]],
        *,
        dtype: Any = None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """One number for each pair of vectors, which may have any lengths, in one request."""
        return await self._result(pairs_request(pairs, dtype, options), timeout)

    async def get(self, path: str, timeout: float | None = None) -> Any:
        """What a page says: get("/v1/devices"), "/v1/status", "/v1/limits", "/v1/kernels"."""
        _, body = await self._answer(get_request(path), timeout)
        return json_of(body)

    async def _result(self, request: Request, timeout: float | None) -> Result:
        head, body = await self._answer(request, timeout)
        return result_of(head, body, request.wants_arrays)

    async def _answer(self, request: Request, timeout: float | None) -> tuple[Head, Body]:
        patience = Patience(self._timeout_s if timeout is None else timeout, self._retries)
        return await within(self._tries(request, patience), patience)

    async def _tries(self, request: Request, patience: Patience) -> tuple[Head, Body]:
        """The answer of status 200 that comes in the end."""
        while True:
            stream = await self._stream()
            was_kept = stream.was_kept
            try:
                head, body = await self._exchange(stream, request, patience)
            except Silence as silence:
                pause_s = patience.after_silence(silence, was_kept)
            else:
                if head.status == 200:
                    return head, body
                problem = problem_of(head.status, body, head.retry_after_s)
                pause_s = patience.after_problem(problem, was_kept)
            await asyncio.sleep(pause_s)

    async def _exchange(
        self, stream: Stream, request: Request, patience: Patience
    ) -> tuple[Head, Body]:
        """One try. The connection goes back to the pool, or ends, however this ends."""
        is_whole = False
        try:
            head = request.head(self._address, patience.remaining())
            answer, body, is_whole = await stream.exchange(head, request)
        finally:
            if is_whole and len(self._idle) < self._pool_size:
                self._idle.append(stream)
            else:
                stream.close()
        stream.was_kept = True
        return answer, body

    async def _stream(self) -> Stream:
        while self._idle:
            stream = self._idle.pop()
            if stream.is_usable():
                return stream
            stream.close()
        host, port = self._address.host, self._address.port
        try:
            reader, writer = await asyncio.open_connection(
                host, port, ssl=self._context, limit=HEAD_BYTES
            )
        except OSError as error:
            raise Unreachable(f"{host}:{port}: {error}") from error
        return Stream(reader, writer)


async def within(work: Awaitable[Kind], patience: Patience) -> Kind:
    try:
        return await asyncio.wait_for(work, patience.remaining())
    except asyncio.TimeoutError as error:
        if isinstance(error, DotdError):
            raise
        raise patience.late() from None
