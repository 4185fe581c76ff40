"""One connection to the service, without asyncio.

Plain sockets never block on sending: where there is no room, a poll waits for room or an answer,
whatever comes first, so that a refusal is heard while the body is still going out. Operands are
sent from where they lie. Receiving blocks, for as long as the socket was told last: telling it
anew, or asking poll() first, would cost each call a system call.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable
from typing import TypeVar

from .errors import BadAnswer, DeadlineExceeded, Unreachable
from .message import HEAD_BYTES, Body, Head, chunk_size
from .operands import Buffer
from .patience import Patience
from .request import Address

PIECE = 64 << 10
FRESH_S = 1.0  # a connection idle for less is taken as it is
BUFFERS = 512  # of one sendmsg(); Linux takes 1024

Room = TypeVar("Room")  # size or place of what is received
Taken = TypeVar("Taken")


class Silence(Unreachable):
    """The connection ended before a byte of the answer."""


class Connection:
    """Over TCP; of one thread at a time."""

    def __init__(self, address: Address, patience: Patience) -> None:
        place = (address.host, address.port)
        try:
            self.socket = socket.create_connection(place, patience.remaining())
        except TimeoutError:
            raise patience.late() from None
        except OSError as error:
            raise Unreachable(f"{address.host}:{address.port}: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(None)
        self.wait_s = math.inf  # at most, when it receives
        self.readable, self.ready = select.poll(), select.poll()
        self.readable.register(self.socket, select.POLLIN)
        self.ready.register(self.socket, select.POLLIN | select.POLLOUT)
        self.was_kept = False
        self.idle_s = 0.0  # since when
        self.rest = b""  # received, not read yet

    def close(self) -> None:
        self.socket.close()

    def is_usable(self) -> bool:
        """Nothing has come since the last answer: neither an end nor a word that nobody asked for.
        Not worth a system call at once: a call that finds the end out is repeated."""
        return time.monotonic() < self.idle_s + FRESH_S or not self.readable.poll(0)

    def send(self, buffers: list[Buffer], size: int, patience: Patience) -> bool:
        """size bytes in all. False: an answer came, or the other side closed, before that."""
        try:
            sent = self._send_some(buffers)
            return sent == size or self._send_rest(buffers, sent, patience)
        except DeadlineExceeded:
            raise
        except OSError:
            return False  # what it said before that may be readable still

    def _send_rest(self, waiting: list[Buffer], sent: int, patience: Patience) -> bool:
        first = 0
        while True:
            while first < len(waiting) and sent >= len(waiting[first]):
                sent -= len(waiting[first])
                first += 1
            if first == len(waiting):
                return True
            waiting[first] = memoryview(waiting[first])[sent:]
            if self._answers_before_room(patience):
                return False
            sent = self._send_some(waiting[first : first + BUFFERS])

    def _send_some(self, buffers: list[Buffer]) -> int:
        try:
            return self.socket.sendmsg(buffers[:BUFFERS], (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def _answers_before_room(self, patience: Patience) -> bool:
        events = self.ready.poll(patience.remaining() * 1000)
        if not events:
            raise patience.late()
        return bool(events[0][1] & (select.POLLIN | select.POLLHUP | select.POLLERR))

    def _wait_at_most(self, left_s: float) -> None:
        """Whole tenths of what is left, so that the next call need not say it again."""
        self.wait_s = math.floor(left_s * 10) / 10 or left_s
        seconds = int(self.wait_s)
        microseconds = max(1, int((self.wait_s - seconds) * 1e6))  # none would be for ever
        timeval = struct.pack("@ll", seconds, microseconds)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)

    def received(self, take: Callable[[Room], Taken], room: Room, patience: Patience) -> Taken:
        """What take(room), the socket's recv() or recv_into(), brings once there is something."""
        left_s = patience.remaining()
        if self.wait_s > left_s:
            self._wait_at_most(left_s)
        while True:
            try:
                return take(room)
            except BlockingIOError:  # it was to wait for less than this call may
                self._wait_at_most(patience.remaining())

    def read_head(self, patience: Patience) -> Head:
        """The next answer's, after those of status 1xx."""
        while True:
            data, end = self.rest, self.rest.find(b"\r\n\r\n")
            while end < 0:
                if len(data) > HEAD_BYTES:
                    break
                data += self._more_of_head(data, patience)
                end = data.find(b"\r\n\r\n")
            if end < 0 or end > HEAD_BYTES:
                raise BadAnswer(f"an answer's head of more than {HEAD_BYTES} bytes")
            self.rest = data[end + 4 :]
            head = Head(data[:end])
            if head.status >= 200:
                return head

    def _more_of_head(self, data: bytes, patience: Patience) -> bytes:
        try:
            piece = self.received(self.socket.recv, PIECE, patience)
        except DeadlineExceeded:
            raise
        except OSError as error:
            raise (Unreachable if data else Silence)(str(error)) from error
        if not piece:
            raise (Unreachable if data else Silence)("the connection ended before the answer")
        return piece

    def read_body(self, head: Head, patience: Patience) -> Body:
        try:
            if head.size is not None:
                return self._read(head.size, patience)
            return (self._read_chunks if head.is_chunked else self._read_to_end)(patience)
        except DeadlineExceeded:
            raise
        except OSError as error:
            raise Unreachable(f"within an answer: {error}") from error

    def _read(self, size: int, patience: Patience) -> Body:
        if size <= len(self.rest):
            body, self.rest = self.rest[:size], self.rest[size:]
            return body
        room = bytearray(size)
        filled = len(self.rest)
        room[:filled] = self.rest
        self.rest = b""
        with memoryview(room) as view:
            while filled < size:
                received = self.received(self.socket.recv_into, view[filled:], patience)
                if received == 0:
                    raise ConnectionError(f"it ended after {filled} of {size} bytes")
                filled += received
        return room

    def _read_to_end(self, patience: Patience) -> bytes:
        pieces = [self.rest]
        while pieces[-1] or len(pieces) == 1:
            pieces.append(self.received(self.socket.recv, PIECE, patience))
        self.rest = b""
        return b"".join(pieces)

    def _read_line(self, patience: Patience) -> bytes:
        while b"\n" not in self.rest:
            piece = self.received(self.socket.recv, PIECE, patience)
            if not piece or len(self.rest) > HEAD_BYTES:
                raise ConnectionError("it ended between chunks")
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def _read_chunks(self, patience: Patience) -> bytes:
        chunks = []
        while size := chunk_size(self._read_line(patience)):
            chunks.append(bytes(self._read(size, patience)))
            self._read_line(patience)
        while self._read_line(patience).strip():
            pass  # trailers
        return b"".join(chunks)


class SecureConnection(Connection):
    """Over TLS, which takes one buffer at a time and tells of nothing while it sends."""

    def __init__(self, address: Address, patience: Patience, context: ssl.SSLContext) -> None:
        super().__init__(address, patience)
        self.socket.settimeout(patience.remaining())
        try:
            self.socket = context.wrap_socket(self.socket, server_hostname=address.host)
        except TimeoutError:
            raise patience.late() from None
        except OSError as error:
            self.socket.close()
            raise Unreachable(f"{address.host}:{address.port}: {error}") from error

    def send(self, buffers: list[Buffer], size: int, patience: Patience) -> bool:
        try:
            for buffer in buffers:
                with memoryview(buffer) as view:
                    for start in range(0, len(view), PIECE):
                        self.socket.settimeout(patience.remaining())
                        self.socket.sendall(view[start : start + PIECE])
        except TimeoutError:
            raise patience.late() from None
        except OSError:
            return False
        return True

    def received(self, take: Callable[[Room], Taken], room: Room, patience: Patience) -> Taken:
        self.socket.settimeout(patience.remaining())
        try:
            return take(room)
        except TimeoutError:
            raise patience.late() from None
