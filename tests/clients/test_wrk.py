"""The wrk script: every way to send vectors and to have results, and whether it would notice a wrong one."""

import http.server
import itertools
import math
import re
import subprocess
import threading

import pytest

from client import PROGRAM_S, ROOT

TYPES = "float16 bfloat16 float32 float64 int8 uint8 int32 int64 complex64 complex128".split()
OIP_TYPES = "float16 bfloat16 float32 float64 int8".split()
BODIES = ["raw", "json", "base64", "npy", "form"]


def runs():
    """Every body with every kind of answer, the types in turn."""
    types, oip_types = itertools.cycle(TYPES), itertools.cycle(OIP_TYPES)
    for body, accept in itertools.product(BODIES, ["json", "raw", "npy"]):
        yield f"n=37 body={body} accept={accept} dtype={next(types)}"
    for body, accept in itertools.product(["oip", "oip-json"], ["json", "raw"]):
        yield f"n=37 body={body} accept={accept} dtype={next(oip_types)}"
    yield from (
        "",
        "n=0",
        "n=1 data=wide",
        "n=2000 data=wide dtype=bfloat16 accuracy=exact",
        "n=50 data=wide dtype=complex128 body=json",
        "n=2000 accuracy=fast device=cpu",
        "n=37 layout=interleaved block=5",
        "n=65536 pairs=1",
        "layout=pairs",
        "n=37 layout=pairs batch=100 accept=raw dtype=float16",  # of which some have no elements
        "n=37 layout=pairs batch=3 accept=npy dtype=int64",
        "n=37 layout=pairs batch=1 dtype=int8",
        "n=300 layout=pairs batch=5 data=wide dtype=complex64",
    )


def wrk(port, *settings, threads=1, connections=2):
    options = [f"-t{threads}", f"-c{connections}", "-d1", f"--timeout={PROGRAM_S}"]
    script = ["-s", "clients/wrk/dot.lua", f"http://127.0.0.1:{port}", "--"]
    command = ["wrk", *options, *script, *settings]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=PROGRAM_S)
    return done.returncode, done.stdout + done.stderr


def counts(output):
    """How many answers were right, wrong and refused, and how many sockets failed."""
    found = re.search(r"(\d+) right, (\d+) wrong, (\d+) not 2xx, (\d+) socket errors", output)
    assert found, output
    return [int(count) for count in found.groups()]


@pytest.mark.parametrize("settings", list(runs()))
def test_only_right_answers_come(daemon, settings):
    status, output = wrk(daemon.port, *settings.split())
    right, *bad = counts(output)
    assert status == 0 and right > 0 and bad == [0, 0, 0], output


@pytest.mark.every_build
def test_many_connections_of_several_threads_get_only_right_answers(daemon):
    status, output = wrk(daemon.port, "body=json", threads=2, connections=16)
    right, *bad = counts(output)
    assert status == 0 and right > 0 and bad == [0, 0, 0], output


def test_answers_may_go_unchecked(daemon):
    status, output = wrk(daemon.port, "check=no")
    assert status == 0 and re.search(r"[1-9]\d* not checked, 0 not 2xx", output), output


def test_a_sum_that_is_not_exact_is_wrong(daemon):
    """Terms of 2^60 that cancel take everything else with them, unless the sum is exact."""
    status, output = wrk(daemon.port, "data=wide", "accuracy=fast")
    right, wrong, *_ = counts(output)
    assert status == 1 and right == 0 and wrong > 0, output
    assert re.search(r"first wrong: 0x\w{16} instead of 0x\w{16}\n", output), output


class Relay(http.server.ThreadingHTTPServer):
    """Hands requests to the daemon and its answers back, as alter(body, type) makes them."""

    daemon_threads = True

    def __init__(self, daemon, alter):
        super().__init__(("127.0.0.1", 0), RelayedCall)
        self.behind, self.alter = daemon, alter
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def handle_error(self, *_):
        """wrk hangs up in the middle; what else goes wrong shows in its counts."""

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()


class RelayedCall(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.behind.call("POST", self.path, sent, dict(self.headers))
        kind = answer.headers["Content-Type"]
        body = self.server.alter(answer.body, kind)
        self.send_response(answer.status)
        for name in ("X-Request-Id", "Inference-Header-Content-Length"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def turn_lowest_bit(body, kind):
    """Of the result, which stands last where it is not JSON."""
    if kind != "application/json":
        return body[:-8] + bytes([body[-8] ^ 1]) + body[-7:]
    text = body.decode()
    if '"bits"' in text:
        bits = re.search(r'"bits": \[?"0x(\w+)"', text)[1]
        return text.replace(bits, f"{int(bits, 16) ^ 1:016x}").encode()
    value = re.search(r'"data": \[(\S+)\]', text)[1]
    return text.replace(value, repr(math.nextafter(float(value), math.inf))).encode()


def keep_the_first():
    """Everybody gets the answer to the first request."""
    first = []

    def alter(body, kind):
        first.append(body)
        return first[0]

    return alter


@pytest.fixture
def relay(daemon):
    started = []

    def start(alter):
        started.append(Relay(daemon, alter))
        return started[-1].server_address[1]

    yield start
    for server in started:
        server.stop()


@pytest.mark.parametrize(
    "settings",
    [
        "",
        "accept=raw",
        "accept=npy",
        "body=oip-json",
        "body=oip accept=raw",
        "layout=pairs",
        "layout=pairs accept=raw",
    ],
)
def test_an_answer_of_which_one_bit_is_wrong_is_noticed(relay, settings):
    status, output = wrk(relay(turn_lowest_bit), "n=37", *settings.split())
    right, wrong, *_ = counts(output)
    assert status == 1 and right == 0 and wrong > 0, output
    assert re.search(r"first wrong: \S+ instead of \S+\n", output), output


def test_an_answer_to_somebody_else_is_noticed(relay):
    status, output = wrk(relay(keep_the_first()), "n=37", "pairs=2")
    right, wrong, *_ = counts(output)
    assert status == 1 and right > 0 and wrong > 0, output


@pytest.mark.parametrize("settings", ["", "accept=npy", "body=oip-json", "body=oip accept=raw"])
def test_an_answer_without_a_result_is_noticed(relay, settings):
    status, output = wrk(relay(lambda body, kind: b""), "n=37", *settings.split())
    right, wrong, *_ = counts(output)
    assert status == 1 and right == 0 and wrong > 0, output


def test_the_same_relay_does_no_harm_when_it_alters_nothing(relay):
    status, output = wrk(relay(lambda body, kind: body), "n=37")
    right, *bad = counts(output)
    assert status == 0 and right > 0 and bad == [0, 0, 0], output


@pytest.mark.parametrize("settings", ["", "body=oip"])
def test_answers_that_are_refused_are_told(start_daemon, settings):
    daemon = start_daemon(max_body_bytes=100)
    status, output = wrk(daemon.port, *settings.split())
    right, wrong, refused, _ = counts(output)
    assert status == 1 and right == wrong == 0 and refused > 0, output
    assert re.search(r"first refused: 413 .*bytes", output), output


@pytest.mark.parametrize(
    "settings, told",
    [
        ("dtype=float31", "dtype must be float16 or "),
        ("nonesuch=1", "unknown setting nonesuch; known are n, "),
        ("n=many", "n must be a number"),
        ("pairs=0", "pairs must be"),
        ("body=oip dtype=uint8", "no model of uint8"),
        ("body=oip accept=npy", "not npy"),
        ("body=json layout=interleaved", "layout is for body=raw"),
        ("body=npy layout=pairs", "layout is for body=raw"),
        ("layout=pairs batch=0", "batch must be"),
        ("data=wide dtype=int8", "int8 holds no 2^60"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(daemon, settings, told):
    status, output = wrk(daemon.port, *settings.split())
    lines = output.splitlines()
    assert status == 1 and lines and lines[-1].startswith("dot.lua: "), output
    assert told in lines[-1] and "PANIC" not in output, output


def test_the_readme_lists_every_setting_with_its_default():
    rows = re.findall(
        r'^    \{ "(\w+)", "(\w+)", ', (ROOT / "clients/wrk/dot.lua").read_text(), re.MULTILINE
    )
    told = re.findall(
        r"^\| `(\w+)` \| (\w+) \|", (ROOT / "clients/wrk/README.md").read_text(), re.MULTILINE
    )
    assert len(rows) > 8 and told == rows
