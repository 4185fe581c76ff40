"""The client for asyncio: the calls of Client, awaited.

Door: AsyncClient, of one event loop at a time. Calls run side by side, each on a connection of its
own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, TypeVar

from .calls import Calls
from .connection import Silence
from .errors import BadAnswer, DotdError, Unreachable
from .message import HEAD_BYTES, Body, Head, chunk_size
from .operands import Buffer
from .patience import Patience
from .request import Request
from .result import Result, json_of, result_of

PIECE = 256 << 10  # written before there is a wait for room: what asyncio may have to copy
AT_ONCE = 64 << 10  # a body up to this is written without an ear for an early answer

Kind = TypeVar("Kind")
Awaited = Coroutine[Any, Any, Result]


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
        if request.lines.size <= AT_ONCE:
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


class AsyncClient(Calls[Awaited, Coroutine[Any, Any, Any], Stream]):
    """Of one event loop at a time; its settings are those of Calls.__init__, its calls are to be
    awaited."""

    _loop: asyncio.AbstractEventLoop | None = None  # whose connections the idle ones are

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
        closing = self._kept()
        self._idle = []
        for stream in closing:
            stream.close()
        await asyncio.gather(*(s.writer.wait_closed() for s in closing), return_exceptions=True)

    def _kept(self) -> list[Stream]:
        """The idle connections; those of another loop, which has ended, are of no use in this."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._idle, self._loop = [], loop
        return self._idle

    async def _result(
        self, make: Callable[..., Request], call: tuple[Any, ...], timeout: float | None
    ) -> Result:
        request = make(*call)
        head, body = await self._answer(request, timeout)
        return result_of(head, body, request.lines.wants_arrays)

    async def _page(
        self, make: Callable[..., Request], call: tuple[Any, ...], timeout: float | None
    ) -> Any:
        _, body = await self._answer(make(*call), timeout)
        return json_of(body)

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
                pause_s = patience.after_refusal(head, body, was_kept)
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
            kept = self._kept()
            if is_whole and len(kept) < self._pool_size:
                kept.append(stream)
            else:
                stream.close()
        stream.was_kept = True
        return answer, body

    async def _stream(self) -> Stream:
        kept = self._kept()
        while kept:
            stream = kept.pop()
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
