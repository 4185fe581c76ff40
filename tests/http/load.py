"""Keeps the CPU device busy for a while, so that what waits behind it can be looked at."""

import contextlib

N = 16384
BUSY_S = 1.0  # enough to queue a few dozen requests on a slow machine
CALIBRATION_ROWS = 32
ROWS_MAX = 1024  # its square is the daemon's max_results
LOOKS = 5

RAW = ("Content-Type: application/octet-stream", "Accept: application/octet-stream")


def _request(rows):
    """Every row with every row: the work grows with the square of the body."""
    path = f"/v1/dot?dtype=float32&device=cpu&shape_a={rows},1,{N}&shape_b={rows},{N}"
    body = bytes(2 * rows * N * 4)
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *RAW]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _rows_for(daemon, seconds):
    with daemon.wire() as wire:
        wire.send(_request(CALIBRATION_ROWS))
        timing = wire.answer().headers["Server-Timing"]
    compute_s = float(timing.split("compute;dur=")[1].split(",")[0]) / 1000
    return min(ROWS_MAX, int(CALIBRATION_ROWS * (seconds / max(compute_s, 1e-4)) ** 0.5) + 1)


def _waiting(status):
    return status["devices"][0]["queued_jobs"]


def queued(status):
    """Jobs that wait for the CPU device behind the second long job of occupied()."""
    return _waiting(status) - 1


def _wait_until_one_waits(daemon):
    """Several looks in a row: a job on its way through the queue is seen there once at the most."""
    looks = 0
    while looks < LOOKS:
        status = daemon.wait_status(lambda status: status["requests"]["in_flight"] == 3)
        looks = looks + 1 if _waiting(status) == 1 else 0


@contextlib.contextmanager
def occupied(daemon):
    """Inside, the worker of a daemon with inline_terms=0 computes a long job; another one waits."""
    request = _request(_rows_for(daemon, BUSY_S))
    with daemon.wire() as first, daemon.wire() as second:
        first.send(request)
        second.send(request)
        _wait_until_one_waits(daemon)
        yield
        for wire in (first, second):
            answer = wire.answer()
            assert answer is not None and answer.status == 200, answer and answer.body[:400]
            assert answer.body.count(0) == len(answer.body) > 0
