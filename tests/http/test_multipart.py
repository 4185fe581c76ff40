"""multipart/form-data: what curl -F, browsers and Python's libraries send, whole and in pieces."""

import subprocess

import numpy as np
import pytest

from cases import numbers
from client import ROOT, post
from test_npy import saved
from test_streams import CHUNKED, CODES, chunks, operands

BOUNDARY = "------------------------7f3a"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def part(name, content, content_type=None, filename=None):
    lines = [f'Content-Disposition: form-data; name="{name}"']
    if filename is not None:
        lines[0] += f'; filename="{filename}"'
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    head = "\r\n".join([f"--{BOUNDARY}", *lines, "", ""]).encode()
    return head + (content.encode() if isinstance(content, str) else content) + b"\r\n"


def raw_part(name, array):
    return part(name, array.tobytes(), "application/octet-stream", f"{name}.bin")


def form(*parts):
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def ask_form(daemon, body, query="", headers={}, **keywords):
    return daemon.call("POST", "/v1/dot" + query, body, FORM | headers, **keywords)


@pytest.mark.every_build
@pytest.mark.parametrize("dtype, code", numbers(*CODES.items()))
def test_operands_of_every_kind_give_the_same_bits(daemon, dtype, code):
    a, b = operands(code, 200)
    expected = daemon.raw(a.tobytes() + b.tobytes(), f"dtype={dtype}").ok()
    pairs = [np.stack([v.real, v.imag], -1).tolist() if code[0] == "c" else v.tolist() for v in (a, b)]
    a_parts = raw_part("a", a), part("a", saved(a)), part("a", str(pairs[0]))
    b_parts = raw_part("b", b), part("b", saved(b.astype(">" + code))), part("b", str(pairs[1]))
    for x in a_parts:
        for y in b_parts:
            for body in (form(part("dtype", dtype), x, y), form(part("dtype", dtype), y, x)):
                answer = ask_form(daemon, body).ok()
                assert (answer["bits"], answer["dtype"]) == (expected["bits"], dtype)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_boundaries_may_be_cut_anywhere(daemon, size):
    a, b = operands("f4", 60)
    body = form(part("id", "r-17"), part("a", saved(a)), part("b", str(b.tolist())))
    answer = ask_form(daemon, chunks(body, size), "", CHUNKED, encode_chunked=True).ok()
    expected = daemon.raw(a.tobytes() + b.tobytes(), "dtype=f4").ok()
    assert (answer["bits"], answer["id"]) == (expected["bits"], "r-17")


def curl(daemon, *arguments):
    command = ["curl", "-sS", *arguments, f"http://127.0.0.1:{daemon.port}/v1/dot"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


@pytest.mark.every_build
def test_curl_sends_forms(daemon, tmp_path):
    a, b = operands("f4", 1000)
    np.save(tmp_path / "a.npy", a)
    b.tofile(tmp_path / "b.f32")
    (tmp_path / "b.json").write_text(str(b.tolist()))
    expected = daemon.raw(a.tobytes() + b.tobytes(), "dtype=f4").ok()
    for b_file in ("b.f32", "b.json;type=application/json"):
        fields = ["dtype=float32", f"a=@{tmp_path}/a.npy", f"b=@{tmp_path}/{b_file}"]
        answer = curl(daemon, *(word for field in fields for word in ("-F", field)))
        assert f'"bits": "{expected["bits"]}"' in answer, answer
    assert '"result": 32.0' in curl(daemon, "-F", "a=[1,2,3]", "-F", "b=[4,5,6]")


def test_shapes_and_options_are_fields(daemon):
    a, b = np.arange(6, dtype="<f4"), np.array([10, 1], "<f4")
    fields = part("dtype", "f4"), part("shape_a", "3,2"), part("diagnostics", "true")
    answer = ask_form(daemon, form(*fields, raw_part("a", a), raw_part("b", b))).ok()
    assert (answer["result"], answer["sum_abs"]) == ([1.0, 23.0, 45.0], [1.0, 23.0, 45.0])
    answer = ask_form(daemon, form(raw_part("a", a), raw_part("b", a)), "?dtype=f4&id=x").ok()
    assert (answer["result"], answer["id"]) == (55.0, "x")


@pytest.mark.parametrize(
    "parts, status, name, pointer",
    [
        ([part("a", "[1]")], 422, "bad-value", "/b"),
        ([part("a", "[1]"), part("b", "[1,2]")], 422, "length-mismatch", None),
        ([part("a", "[1]"), part("b", "[1]"), part("c", "1")], 400, "bad-option", "/c"),
        ([part("a", "[1]"), part("a", "[1]")], 400, "bad-option", "/a"),
        ([part("a", "[1]"), part("id", "x")], 400, "bad-option", "/id"),
        ([part("dtype", "int9")], 422, "unknown-dtype", "/dtype"),
        ([part("layout", "concat")], 400, "bad-option", "/layout"),
        ([part("id", "x" * 5000)], 413, "too-large", "/id"),
        ([part("a", "[1,,2]")], 400, "bad-syntax", "/a/1"),
        ([part("a", bytes(8), "application/octet-stream")], 400, "bad-option", "/dtype"),
        ([part("a", bytes(8), "image/png")], 415, "unsupported-media-type", "/a"),
        ([part("a", saved(np.zeros(2, "u2")))], 422, "unknown-dtype", "/a"),
        ([part("dtype", "f4"), part("a", saved(np.zeros(2)))], 400, "bad-option", "/a"),
        ([part("a", saved(np.zeros(2))[:-1])], 400, "bad-length", "/a"),
        ([part("a", saved(np.zeros(2)) + b"x")], 400, "bad-length", "/a"),
    ],
)
def test_forms_that_are_wrong_are_refused_at_their_place(daemon, parts, status, name, pointer):
    problem = ask_form(daemon, form(*parts)).problem(status, name)
    assert problem.get("pointer") == pointer, problem


def test_bodies_that_are_no_form_are_400(daemon):
    whole = form(part("a", "[1]"), part("b", "[2]"))
    assert ask_form(daemon, whole).ok()["result"] == 2.0
    for body in (b"", b"a=1&b=2", whole[:-6], whole[: len(whole) // 2]):
        assert "boundary" in ask_form(daemon, body).problem(400, "bad-syntax")["detail"]
    answer = daemon.call("POST", "/v1/dot", whole, {"Content-Type": "multipart/form-data"})
    assert "boundary" in answer.problem(400, "bad-syntax")["detail"]


@pytest.mark.every_build
@pytest.mark.parametrize("first", ["raw", "npy"])
def test_a_second_operand_is_reduced_as_it_arrives(start_daemon, first):
    """A budget that holds one operand, and no more."""
    daemon = start_daemon(cuda="off", memory_budget_bytes=9 << 20)
    a, b = operands("f4", 2 << 20)
    expected = daemon.raw(a.tobytes() + b.tobytes(), "dtype=f4").ok()
    a_part = raw_part("a", a) if first == "raw" else part("a", saved(a))
    for b_part in (raw_part("b", b), part("b", saved(b.astype(">f4")))):
        body = form(part("dtype", "f4"), a_part, b_part)
        assert ask_form(daemon, body).ok()["bits"] == expected["bits"]
        if first == "npy":  # which tells its size
            answer = ask_form(daemon, chunks(body), "", CHUNKED, encode_chunked=True)
            assert answer.ok()["bits"] == expected["bits"]
        swapped = form(part("dtype", "f4"), b_part, a_part)
        assert ask_form(daemon, swapped).status in (413, 503)


def test_a_form_that_stops_in_the_middle_leaves_nothing_behind(daemon):
    a, b = operands("f4", 1 << 18)
    body = form(part("dtype", "f4"), raw_part("a", a), raw_part("b", b))
    request = post("/v1/dot", body, f"Content-Type: {FORM['Content-Type']}")
    for size in (300, 5000, len(request) // 2, len(request) - 10):
        with daemon.wire() as wire:
            wire.send(request[:size])
    daemon.wait_status(lambda status: status["memory"]["used_bytes"] == 0)
