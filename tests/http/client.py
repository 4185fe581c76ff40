"""What the tests know about a daemon: how to start it, call it, and read exactly what came back."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE_S = 60  # for anything that should happen soon; only a hang ever waits so long
PROGRAM_S = 600  # likewise, for a program that a test runs
POLL_S = 0.002

SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "exitcode=66:atexit_sleep_ms=20",  # by itself, each stop sleeps for a second
}
REPORT = re.compile(
    r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:|Assertion .* failed"
)


def parse_json(text):
    """Reads strict JSON: no NaN, no repeated key; order of keys is kept."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    def unique(pairs):
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), f"repeated key in {keys}"
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


class Answer:
    """One response: status, headers (http.client's, any case) and the whole body."""

    def __init__(self, status, headers, body, version=11):
        self.status, self.headers, self.body, self.version = status, headers, body, version

    def json(self):
        return parse_json(self.body.decode("utf-8"))

    def ok(self):
        """The answer's object, when it is one of success."""
        assert self.status == 200, f"{self.status}: {self.body[:400]!r}"
        assert self.headers["Content-Type"].split(";")[0] == "application/json"
        return self.json()

    def problem(self, status, name):
        """The problem, when it is the one expected (RFC 9457)."""
        assert self.status == status, f"{self.status}: {self.body[:400]!r}"
        assert self.headers["Content-Type"].split(";")[0] == "application/problem+json"
        problem = self.json()
        assert problem["type"] == f"/problems/{name}", problem
        assert problem["status"] == status
        assert problem["title"] and problem["detail"], problem
        return problem


class Daemon:
    """A running dotd on a port that it chose. Options are settings by name: inline_terms=0."""

    def __init__(self, binary, stderr_path, variables={}, **options):
        self.stderr_path = pathlib.Path(stderr_path)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DOTD_")}
        flags = [f"--{name}={value}" for name, value in options.items()]
        with open(self.stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(
                [str(binary), "--listen=127.0.0.1:0", *flags],
                stdout=subprocess.PIPE,
                stderr=stderr,
                stdin=subprocess.DEVNULL,
                env=environment | SANITIZERS | variables,
            )
        try:
            self.port = self._read_port()
            self._wait_ready()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _read_port(self):
        line, deadline = b"", time.monotonic() + DEADLINE_S
        while not line.endswith(b"\n"):
            wait = max(0, deadline - time.monotonic())
            assert select.select([self.process.stdout], [], [], wait)[0], "dotd printed no address"
            byte = os.read(self.process.stdout.fileno(), 1)
            assert byte, f"dotd did not start: {self.stderr()}"
            line += byte
        found = re.fullmatch(rb"dotd listening on http://127\.0\.0\.1:(\d+)\n", line)
        assert found, f"unexpected first line {line!r}"
        return int(found[1])

    def _wait_ready(self):
        poll(lambda: self.get("/readyz").status == 200, "never ready")

    def stderr(self):
        return self.stderr_path.read_text(errors="replace")

    def last_words(self):
        return "...\n" + self.stderr()[-6000:]

    def check(self):
        """It is alive and no sanitizer has spoken."""
        assert not REPORT.search(self.stderr()), self.last_words()
        assert (
            self.process.poll() is None
        ), f"exit status {self.process.poll()}: {self.last_words()}"

    def signal(self, number):
        self.process.send_signal(number)

    def insist(self):
        """SIGTERM until it has ended: soon after the first it is no second one."""
        poll(lambda: self.signal(signal.SIGTERM) or self.process.poll() is not None, "the end")

    def wait(self):
        """Its exit status; a sanitizer's report is a failure whatever that is."""
        status = self.process.wait(timeout=DEADLINE_S)
        self.process.stdout.close()
        assert not REPORT.search(self.stderr()), self.last_words()
        return status

    def stop(self):
        """SIGTERM ends it in order; one that a test has already ended is only looked at."""
        if self.process.returncode is not None:
            return
        try:
            self.check()
            self.signal(signal.SIGTERM)
            status = self.wait()
            assert status == 0, f"exit status {status}: {self.last_words()}"
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def connect(self):
        """A kept-alive http.client connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)

    def call(self, method, path, body=None, headers={}, **keywords):
        """One request on a connection of its own. When this returns it is over for the daemon too,
        and counted, which is not so when its answer is here."""
        connection = self.connect()
        connection.connect()
        with connection.sock.dup() as link:  # http.client closes its own when it likes
            try:
                return ask(connection, method, path, body, headers, **keywords)
            finally:
                connection.close()
                hang_up(link)

    def get(self, path, headers={}):
        return self.call("GET", path, headers=headers)

    def dot(self, request, query="", headers={}):
        """POST /v1/dot with a JSON body: an object to encode, or text as it is."""
        body = request if isinstance(request, (str, bytes)) else json.dumps(request)
        headers = {"Content-Type": "application/json"} | headers
        return self.call("POST", "/v1/dot" + query, body, headers)

    def raw(self, body, query, headers={}, **keywords):
        """POST /v1/dot with raw elements."""
        headers = {"Content-Type": "application/octet-stream"} | headers
        return self.call("POST", "/v1/dot?" + query, body, headers, **keywords)

    def wire(self):
        """A bare connection, for what no client library would send."""
        return Wire(self.port)

    def workers(self):
        """The processes that a supervisor has; none without one."""
        pid = self.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(child) for child in children.split()]

    def wait_status(self, reached):
        """Asks /v1/status until reached(status) is true; returns that status."""
        seen = []

        def ask_once():
            seen[:] = [self.get("/v1/status").ok()]
            return reached(seen[0])

        poll(ask_once, seen)
        return seen[0]

    def wait_idle(self):
        """Until no request is left but the one that asks, and no operand is in memory."""
        self.wait_status(
            lambda status: status["requests"]["in_flight"] == 1
            and status["memory"]["used_bytes"] == 0
        )


def poll(reached, what):
    """Asks until the answer is yes; the pause leaves the processor to the daemon."""
    deadline = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline, f"never reached: {what}"
        time.sleep(POLL_S)


def hang_up(link):
    """Says that no more will come, and waits until the other side has closed."""
    with contextlib.suppress(OSError):  # one that it has reset already
        link.shutdown(socket.SHUT_WR)
    with contextlib.suppress(ConnectionError):
        while link.recv(65536):
            pass


def ask(connection, method, path, body=None, headers={}, **keywords):
    """One request on an open http.client connection."""
    connection.request(method, path, body, headers, **keywords)
    response = connection.getresponse()
    return Answer(response.status, response.headers, response.read(), response.version)


class Wire:
    """A socket that speaks bytes. Reading waits up to DEADLINE_S."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.reader.close()
        self.socket.close()

    def send(self, data):
        """Sends all of it, unless the other side has closed: what it answered is still read."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def reset(self):
        """Closes with a reset in the place of an end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def drip(self, data, pause_s):
        """Sends byte by byte until an answer or the end comes; False when all was taken first."""
        for byte in data:
            if select.select([self.socket], [], [], pause_s)[0]:
                return True
            self.send(bytes([byte]))
        return False

    def answer(self, to_head=False):
        """The next response, or None when the connection has ended before one."""
        try:
            line = self.reader.readline()
        except ConnectionResetError:
            return None
        if not line:
            return None
        found = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n", line)
        assert found, f"not a status line: {line!r}"
        status, headers = int(found[1]), http.client.parse_headers(self.reader)
        has_body = status >= 200 and status not in (204, 304) and not to_head
        size = int(headers.get("Content-Length", 0)) if has_body else 0
        body = self.reader.read(size)
        assert len(body) == size, f"{len(body)} of {size} bytes came"
        return Answer(status, headers, body)

    def answers_until_closed(self):
        """Every response until the other side closes: proof that nothing else was served."""
        answers = []
        while (answer := self.answer()) is not None:
            answers.append(answer)
        return answers


def post(path, body, *headers):
    """The bytes of a POST with its length, and of more header lines."""
    body = body.encode() if isinstance(body, str) else body
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def get(path, *headers):
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *headers]).encode() + b"\r\n\r\n"
