"""A small HTTP server whose answers a test plants: what the real one says once in a blue moon."""

import json
import socket
import struct
import threading
from typing import NamedTuple

DEADLINE_S = 60
HANG_UP = object()  # the connection ends without a byte
RESET = object()  # likewise, by a reset
SILENCE = object()  # nothing comes until the server stops


def answer(status, body=b"", *headers):
    head = [f"HTTP/1.1 {status} Planted", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def raw_result(value, *headers):
    kind = ("Content-Type: application/octet-stream", "Dotd-Dtype: float64")
    return answer(200, struct.pack("<d", value), *kind, *headers)


def json_result(value, **members):
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    document = {"result": value, "bits": f"0x{bits:016x}", "shape": [], "result_dtype": "float64"}
    document |= {"error_bound": 0.0, "flags": [], "kernel": "exact", "device": "cpu"} | members
    return answer(200, json.dumps(document).encode(), "Content-Type: application/json")


def problem(status, name, *headers, **members):
    document = {"type": f"/problems/{name}", "title": "planted", "status": status} | members
    kind = "Content-Type: application/problem+json"
    return answer(status, json.dumps(document).encode(), kind, *headers)


def short(planted):
    """An answer as a test's name."""
    return planted[:60].decode("latin-1")


class Late(NamedTuple):
    """An answer after a while."""

    seconds: float
    answer: bytes


class Planted:
    """Reads whole requests and gives the answers in turn: bytes, Late, HANG_UP, RESET or SILENCE.
    requests has (number of the connection, head, body) of each."""

    def __init__(self, answers, context=None):
        self.answers = list(answers)
        self.requests = []
        self.context = context
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        self.threads = [threading.Thread(target=self._accept)]
        self.connections = []
        self.threads[0].start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            number = len(self.connections)
            self.connections.append(connection)
            self.threads.append(threading.Thread(target=self._serve, args=(connection, number)))
            self.threads[-1].start()

    def _serve(self, connection, number):
        connection.settimeout(DEADLINE_S)
        try:
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as reader:
                while self._answer(connection, reader, number):
                    pass
        except OSError:
            pass  # the client has left

    def _answer(self, connection, reader, number):
        lines = []
        while (line := reader.readline()) not in (b"\r\n", b""):
            lines.append(line.decode("latin-1").rstrip("\r\n"))
        if not lines:
            return False
        sizes = [line for line in lines if line.lower().startswith("content-length:")]
        body = reader.read(int(sizes[0].split(":")[1])) if sizes else b""
        with self.lock:
            self.requests.append((number, lines, body))
            planted = self.answers.pop(0)
        if isinstance(planted, Late):
            self.stopped.wait(planted.seconds)
            planted = planted.answer
        if planted is SILENCE:
            self.stopped.wait(DEADLINE_S)
        if planted is RESET:  # which closing without lingering is
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if not isinstance(planted, bytes):
            return False
        connection.sendall(planted)
        return b"Connection: close" not in planted

    def stop(self):
        self.stopped.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended
        for thread in self.threads:
            thread.join(DEADLINE_S)
