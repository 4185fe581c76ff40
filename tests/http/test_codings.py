"""Content-Encoding: compressed bodies of every type, bounded by what they grow to."""

import gzip
import json
import zlib

import numpy as np
import pytest

from client import post
from test_multipart import FORM, form, part, raw_part
from test_npy import NPY, saved
from test_streams import CHUNKED, chunks, operands, worker_kib

PACKED = {"gzip": gzip.compress, "deflate": zlib.compress, "x-gzip": gzip.compress}
# Without the time: every process of a run names the cases alike.
PACKED_REQUEST = gzip.compress(b'{"a":[1],"b":[2]}', mtime=0)
JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "application/octet-stream"}


def ask_packed(daemon, body, headers=JSON, query="", coding="gzip", **keywords):
    headers = headers | {"Content-Encoding": coding}
    return daemon.call("POST", "/v1/dot" + query, body, headers, **keywords)


@pytest.mark.every_build
@pytest.mark.parametrize("coding", PACKED)
def test_bodies_of_every_type_may_be_compressed(daemon, coding):
    a, b = operands("f4", 70_000)
    expected = daemon.raw(a.tobytes() + b.tobytes(), "dtype=f4").ok()["bits"]
    parts = form(part("dtype", "f4"), raw_part("a", a), part("b", saved(b)))
    request = json.dumps({"a": a.tolist(), "b": b.tolist(), "dtype": "f4"}).encode()
    bodies = (
        (request, JSON, ""),
        (a.tobytes() + b.tobytes(), RAW, "?dtype=f4"),
        (saved(a, b), NPY, ""),
        (parts, FORM, ""),
    )
    for body, headers, query in bodies:
        packed = PACKED[coding](body)
        assert ask_packed(daemon, packed, headers, query, coding).ok()["bits"] == expected
        keywords = {"headers": headers | CHUNKED, "query": query, "coding": coding}
        answer = ask_packed(daemon, chunks(packed, 9001), encode_chunked=True, **keywords)
        assert answer.ok()["bits"] == expected


def test_the_body_of_a_request_may_be_plain_all_the_same(daemon):
    assert ask_packed(daemon, '{"a":[1],"b":[2]}', coding="identity").ok()["result"] == 2.0


def test_gzip_members_are_one_body(daemon):
    request = b'{"a":[1,2,3],"b":[4,5,6]}'
    body = b"".join(gzip.compress(request[i : i + 7]) for i in range(0, len(request), 7))
    assert ask_packed(daemon, body).ok()["result"] == 32.0


@pytest.mark.parametrize(
    "coding, body",
    [
        ("gzip", PACKED_REQUEST[:-1]),
        ("gzip", PACKED_REQUEST + b"\0"),
        ("gzip", PACKED_REQUEST + b"{}"),
        ("gzip", zlib.compress(b'{"a":[1],"b":[2]}')),
        ("gzip", b'{"a":[1],"b":[2]}'),
        ("gzip", b""),
        ("deflate", zlib.compress(b'{"a":[1],"b":[2]}')[:-1]),
        ("deflate", zlib.compress(b'{"a":[1],"b":[2]}') * 2),
        ("deflate", zlib.compress(b'{"a":[1],"b":[2]}')[2:-4]),
        ("deflate", b""),
    ],
)
def test_what_is_not_whole_as_its_coding_is_400(daemon, coding, body):
    problem = ask_packed(daemon, body, coding=coding).problem(400, "bad-syntax")
    assert coding in problem["detail"] and 0 <= problem["offset"] <= len(body), problem


def test_a_checksum_that_is_wrong_is_no_answer(daemon):
    body = bytearray(gzip.compress(b'{"a":[1],"b":[2]}'))
    body[-6] ^= 1
    ask_packed(daemon, bytes(body)).problem(400, "bad-syntax")


def test_problems_of_what_was_compressed_are_told_as_ever(daemon):
    problem = ask_packed(daemon, gzip.compress(b'{"a":[1,2,],"b":[1,2]}')).problem(400, "bad-syntax")
    assert problem["offset"] == 10
    body = zlib.compress(b'{"a":[1],"b":[1,2],"id":"x"}')
    assert ask_packed(daemon, body, coding="deflate").problem(422, "length-mismatch")["id"] == "x"


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "gzip,deflate", ""])
def test_other_codings_are_415_and_list_those_read(daemon, coding):
    request = post("/v1/dot", b"", f"Content-Encoding: {coding}", "Expect: 100-continue")
    with daemon.wire() as wire:
        wire.send(request.replace(b"Content-Length: 0", b"Content-Length: 50"))
        answer = wire.answer()
    answer.problem(415, "unsupported-media-type")
    assert answer.headers["Accept-Encoding"] == "gzip, deflate"


def test_a_coding_given_twice_is_415(daemon):
    body = gzip.compress(gzip.compress(b'{"a":[1],"b":[2]}'))
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", body, "Content-Encoding: gzip", "Content-Encoding: gzip"))
        wire.answer().problem(415, "unsupported-media-type")


@pytest.mark.every_build
@pytest.mark.no_race
def test_a_bomb_is_413_in_flat_memory(start_daemon):
    daemon = start_daemon(cuda="off", max_body_bytes=64 << 20)
    bomb = gzip.compress(bytes(66 << 20))
    query = "?dtype=int8&layout=interleaved;block=4096"
    small = gzip.compress(bytes(1 << 20))
    assert ask_packed(daemon, small, RAW, query).ok()["n"] == 1 << 19
    before = worker_kib(daemon, "VmHWM")
    for headers, target in ((RAW, query), (FORM, "")):
        problem = ask_packed(daemon, bomb, headers, target).problem(413, "too-large")
        assert (problem["limit"], problem["setting"]) == (64 << 20, "max_body_bytes")
    assert worker_kib(daemon, "VmHWM") - before < 8 << 10
    whole = gzip.compress(bytes(64 << 20))
    assert ask_packed(daemon, whole, RAW, query).ok()["n"] == 32 << 20


def test_a_bomb_of_elements_is_bounded_by_the_memory_budget(start_daemon):
    daemon = start_daemon(cuda="off", memory_budget_bytes=8 << 20)
    answer = ask_packed(daemon, gzip.compress(bytes(40 << 20)), RAW, "?dtype=int8")
    assert answer.status in (413, 503)
    daemon.wait_status(lambda status: status["memory"]["used_bytes"] == 0)


def test_one_row_is_reduced_as_it_is_decompressed(start_daemon):
    """A budget that holds one operand, and no more."""
    daemon = start_daemon(cuda="off", memory_budget_bytes=9 << 20)
    a = np.ones(2 << 20, "f4")
    assert ask_packed(daemon, gzip.compress(saved(a, a), 1), NPY).ok()["result"] == float(2 << 20)


def test_inferences_may_be_compressed(daemon):
    inputs = [
        {"name": name, "shape": [2], "datatype": "FP32", "data": data}
        for name, data in (("a", [1, 2]), ("b", [3, 4]))
    ]
    body = json.dumps({"inputs": inputs}).encode()
    for coding, pack in PACKED.items():
        headers = JSON | {"Content-Encoding": coding}
        answer = daemon.call("POST", "/v2/models/dot/infer", pack(body), headers).ok()
        assert answer["outputs"][0]["data"] == [11.0]
