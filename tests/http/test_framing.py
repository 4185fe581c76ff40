"""Heads that leave it unclear where a request ends: one refusal, and nothing after it is served."""

import struct

import pytest

from client import get, post

BODY = b'{"a":[1],"b":[2]}'
SMUGGLED = get("/v1/dot?a=7&b=6")


def head(*lines, start="POST /v1/dot HTTP/1.1", host="Host: x"):
    return "\r\n".join([start] + ([host] if host else []) + list(lines)).encode() + b"\r\n\r\n"


def refused(daemon, data):
    """The one answer to data, after which the connection must be closed."""
    with daemon.wire() as wire:
        wire.send(data)
        answers = wire.answers_until_closed()
    assert len(answers) == 1, [answer.status for answer in answers]
    assert answers[0].headers["Connection"].lower() == "close"
    return answers[0]


def refused_as(daemon, data, status, name):
    """Refused by the daemon's guard, or by libmicrohttpd itself, which 1.0 does more often: its page
    is HTML and says 400."""
    answer = refused(daemon, data)
    version = daemon.get("/v1/status").ok()["versions"]["libmicrohttpd"]
    if version.startswith("0.9.") or "problem" in (answer.headers["Content-Type"] or ""):
        answer.problem(status, name)
    else:
        assert answer.status == 400


CHUNKED = b"0\r\n\r\n"

UNCLEAR = {
    "two lengths that differ": head("Content-Length: 0", f"Content-Length: {len(SMUGGLED)}")
    + SMUGGLED,
    "two lengths that agree": head("Content-Length: 17", "Content-Length: 17") + BODY + SMUGGLED,
    "length, then chunked": head("Content-Length: 5", "Transfer-Encoding: chunked")
    + CHUNKED
    + SMUGGLED,
    "chunked, then length": head("Transfer-Encoding: chunked", "Content-Length: 5")
    + CHUNKED
    + SMUGGLED,
    "a space before the colon of the length": head("Content-Length : 40") + SMUGGLED,
    "a space before the colon of the coding": head("Transfer-Encoding : chunked")
    + CHUNKED
    + SMUGGLED,
    "a tab before the colon": head("Content-Length\t: 40") + SMUGGLED,
    "chunked twice": head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")
    + CHUNKED
    + SMUGGLED,
    "no host": head("Content-Length: 0", host=None) + SMUGGLED,
    "two hosts": head("Host: y", "Content-Length: 0") + SMUGGLED,
    "a name with a bracket": head("Content(Length: 40") + SMUGGLED,
    "a control character in a value": head("X-Note: a\x01b", "Content-Length: 0") + SMUGGLED,
    "a folded length": head(f"Content-Length: {len(SMUGGLED)}\r\n fold") + SMUGGLED,
    "a length behind a line end": head(f"Content-Length:\r\n {len(SMUGGLED)}") + SMUGGLED,
    "a folded coding": head("Transfer-Encoding: chunked\r\n x") + CHUNKED + SMUGGLED,
    "a second length behind a fold": head(
        f"Content-Length: {len(SMUGGLED)}\r\n z\r\nContent-Length: 0"
    )
    + SMUGGLED,
    "a header without a name": head(": foo", f"Content-Length: {len(SMUGGLED)}") + SMUGGLED,
    "a NUL in a length": head(f"Content-Length: {len(SMUGGLED)}\0", "X-Last: 1") + SMUGGLED,
    "a line that ends in LF alone": head("X-Note: a\nContent-Length: 0") + SMUGGLED,
    "GET with a length": head("Content-Length: 17", start="GET /livez HTTP/1.1") + BODY + SMUGGLED,
    "GET with chunks": head("Transfer-Encoding: chunked", start="GET /livez HTTP/1.1")
    + CHUNKED
    + SMUGGLED,
    "HEAD with a length": head("Content-Length: 17", start="HEAD /livez HTTP/1.1")
    + BODY
    + SMUGGLED,
}


@pytest.mark.every_build
@pytest.mark.parametrize("name", UNCLEAR)
def test_unclear_framing_is_400_and_closes(daemon, name):
    if name.startswith("HEAD"):
        with daemon.wire() as wire:
            wire.send(UNCLEAR[name])
            assert wire.answer(to_head=True).status == 400
            assert wire.answer() is None
    else:
        refused_as(daemon, UNCLEAR[name], 400, "bad-framing")


LINE_ENDS = range(5)  # of the request line, the fields, the empty line
ZEROS = bytes(16)  # such is the library's buffer behind a head as well


def bare_at(places, start, *lines):
    """A head whose line ends at these places are LF alone."""
    ends = ["\n" if place in places else "\r\n" for place in LINE_ENDS]
    return "".join(map("".join, zip([start, "Host: x", *lines, ""], ends))).encode()


@pytest.mark.every_build
@pytest.mark.parametrize("places", [[place] for place in LINE_ENDS] + [LINE_ENDS], ids=str)
def test_a_line_that_ends_in_lf_alone_is_400_whatever_comes_behind(daemon, places):
    fields = f"Content-Length: {len(ZEROS)}", "Content-Type: application/octet-stream"
    start = "POST /v1/dot?dtype=float32 HTTP/1.1"
    for version in "1.1", "1.0":
        page = bare_at(places, f"GET /livez HTTP/{version}", "X-Note: a", "X-Last: b")
        refused_as(daemon, page, 400, "bad-framing")
        refused_as(daemon, page + SMUGGLED, 400, "bad-framing")
    refused_as(daemon, bare_at(places, start, *fields) + ZEROS, 400, "bad-framing")
    with daemon.wire() as wire:  # that the right head is known changes nothing
        for _ in range(2):
            wire.send(bare_at([], start, *fields) + ZEROS)
            assert wire.answer().ok()["result"] == 0
        wire.send(bare_at(places, start, *fields) + ZEROS)
        assert wire.answer().status == 400
        assert wire.answer() is None


def test_a_head_without_fields_ends_its_lines_in_cr_lf(daemon):
    with daemon.wire() as wire:
        wire.send(b"GET /livez HTTP/1.0\r\n\r\n")
        assert wire.answer().status == 200
    for ends in b"\n\n", b"\r\n\n", b"\n\r\n":
        refused_as(daemon, b"GET /livez HTTP/1.0" + ends, 400, "bad-framing")


@pytest.mark.parametrize(
    "coding", ["gzip, chunked", "identity", "xchunked", "chunked, gzip", "gzip"]
)
def test_other_transfer_codings_are_501_and_close(daemon, coding):
    data = head(f"Transfer-Encoding: {coding}") + CHUNKED + SMUGGLED
    refused_as(daemon, data, 501, "unknown-coding")


def test_a_header_of_nothing_but_a_colon_serves_nothing_more(daemon):
    """libmicrohttpd 0.9 ends the head there; the line after it is no request."""
    with daemon.wire() as wire:
        wire.send(head(":", f"Content-Length: {len(SMUGGLED)}") + SMUGGLED)
        data = wire.reader.read()
    assert b'"result"' not in data
    assert b" 400 " in data


def test_an_unknown_method_is_501(daemon):
    answer = daemon.call("BREW", "/v1/dot")
    answer.problem(501, "unknown-method")


@pytest.mark.parametrize(
    "length", ["18446744073709551615", "18446744073709551614", "9223372036854775807"]
)
def test_a_length_that_nobody_can_meet_is_refused_at_once(daemon, length):
    assert refused(daemon, head(f"Content-Length: {length}") + BODY).status == 413


@pytest.mark.parametrize(
    "length", ["-1", "+5", "", "5, 5", "0x10", "1 7", "99999999999999999999999"]
)
def test_a_length_that_is_no_number_closes(daemon, length):
    """libmicrohttpd answers these itself, before the daemon; some versions repeat the head."""
    with daemon.wire() as wire:
        wire.send(head(f"Content-Length: {length}") + SMUGGLED)
        data = wire.reader.read()
    assert data.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")), data
    assert b'"result"' not in data


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32),
        b"GET /livez\r\n\r\n",
        b"GET /livez HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /livez FTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_no_service(start_daemon, data):
    daemon = start_daemon(head_timeout_ms=1000)
    with daemon.wire() as wire:
        wire.send(data)
        assert b" 200 " not in wire.reader.read()
    assert daemon.get("/livez").status == 200


def test_a_bad_chunk_size_ends_the_connection(daemon):
    with daemon.wire() as wire:
        wire.send(
            head("Transfer-Encoding: chunked", "Content-Type: application/json")
            + b"zz\r\n"
            + BODY
            + SMUGGLED
        )
        data = wire.reader.read()
    assert b'"result"' not in data


@pytest.mark.parametrize("size", [36_000, 70_000, 1_000_000])
def test_a_head_that_is_too_long_is_refused(daemon, size):
    with daemon.wire() as wire:
        wire.send(get("/livez", "X-Long: " + "x" * size))
        answer = wire.answer()
        if size < daemon.get("/v1/limits").ok()["fixed"]["head_bytes"]:
            assert answer.status == 200
        else:  # or the end, as the library closes over what it has not read
            assert answer is None or answer.status == 431
    assert daemon.get("/livez").status == 200


def test_the_longest_query_string_is_read(daemon):
    limit = daemon.get("/v1/limits").ok()["fixed"]["query_bytes"]
    query = "a=" + "1," * ((limit - 8) // 2) + "1&b=1"
    query += "&" * (limit - len(query))
    with daemon.wire() as wire:
        wire.send(get("/v1/dot?" + query, "X-Long: " + "x" * 4096))
        wire.answer().problem(422, "length-mismatch")
        wire.send(get("/v1/dot?" + query + "&", "X-Long: " + "x" * 4096))
        wire.answer().problem(413, "too-large")


def test_a_target_that_is_too_long_is_refused(daemon):
    with daemon.wire() as wire:
        wire.send(get("/v1/dot?a=" + "1," * 50_000 + "1&b=1"))
        answer = wire.answer()
        assert answer is None or answer.status == 414
    assert daemon.get("/livez").status == 200


def test_an_unknown_expectation_is_417(daemon):
    with daemon.wire() as wire:
        wire.send(head("Expect: 200-ok", f"Content-Length: {len(BODY)}"))
        wire.answer().problem(417, "unknown-expectation")


def test_a_body_where_none_is_read_does_not_become_a_request(daemon):
    with daemon.wire() as wire:
        wire.send(post("/livez", SMUGGLED) + get("/livez", "Connection: close"))
        answers = wire.answers_until_closed()
    assert answers[0].status == 405
    assert all(b'"result"' not in answer.body for answer in answers)


def test_a_refused_request_leaves_a_well_framed_connection_open(daemon):
    with daemon.wire() as wire:
        for _ in range(3):
            wire.send(post("/v1/dot", "nonsense", "Content-Type: application/json"))
            wire.answer().problem(400, "bad-syntax")
        wire.send(post("/v1/dot", BODY, "Content-Type: application/json"))
        assert wire.answer().ok()["result"] == 2.0


def test_header_names_match_in_any_case(daemon):
    with daemon.wire() as wire:
        wire.send(
            b"POST /v1/dot HTTP/1.1\r\nhOST: x\r\ncontent-length: 17\r\n"
            b"CONTENT-TYPE: application/json\r\n\r\n"
            + BODY
        )
        assert wire.answer().ok()["result"] == 2.0


@pytest.mark.every_build
def test_blanks_behind_a_value_are_no_part_of_it(daemon):
    """RFC 9110 section 5.5."""
    lines = (
        "Content-Type: application/json",
        "Accept: application/octet-stream",
        "Content-Encoding: identity",
        "X-Request-Id: mine",
        "X-Timeout-Ms: 60000",
    )
    with daemon.wire() as wire:
        for blanks in ("", " ", " \t  "):
            wire.send(post("/v1/dot", BODY, *(line + blanks for line in lines)))
            answer = wire.answer()
            assert answer.status == 200, answer.body
            assert answer.headers["Content-Type"] == "application/octet-stream"
            assert answer.headers["X-Request-Id"] == "mine"
        wire.send(head("Expect: 100-continue \t", f"Content-Length: {len(BODY)}"))
        assert wire.answer().status == 100
        wire.send(BODY)
        assert wire.answer().ok()["result"] == 2.0
        wire.send(post("/v1/dot", BODY, "X-Timeout-Ms: 1 0 "))
        assert '"1 0"' in wire.answer().problem(422, "bad-value")["detail"]


# ---- a head that has come before ----

PAIR = struct.pack("<4i", 300, 2, 3, 4)
KNOWN = post(
    "/v1/dot?dtype=int32",
    PAIR,
    "Content-Type: application/octet-stream",
    "Accept: application/json",
    "X-Request-Id: ab",
    "X-Note: cd",
)

# What is changed of it, and what becomes of that: a result, or a status.
CHANGED = {
    "nothing": (b"", b"", 908),
    "the type of the elements": (b"=int32", b"=uint8", 140),
    "an escape": (b"=int32", b"=%69nt32", 908),
    "the path": (b"/v1/dot", b"/v1/dut", 404),
    "the method": (b"POST", b"PUSH", 501),
    "the version": (b"HTTP/1.1", b"HTTP/1.0", 908),
    "the length": (b"Length: 16", b"Length: 15", 400),
    "the length's digits": (b"Length: 16", b"Length: +6", 400),
    "the length's name": (b"Content-Length", b"Content_Length", 0),
    "an expectation": (b"X-Note: cd", b"Expect: xy", 417),
    "what is accepted": (b"Accept: application/json", b"Accept: application/jsan", 406),
    "a control character": (b"X-Note: cd", b"X-Note: c\x01", 400),
    "a bare line feed": (b"cd\r\n", b"cdx\n", 400),
    "one field fewer": (b"X-Note: cd\r\n", b"", 908),
    "one field more": (b"X-Note: cd\r\n", b"X-Note: cd\r\nHost: y\r\n", 400),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_head_is_read_however_often_one_like_it_came(daemon, name):
    old, new, expected = CHANGED[name]
    with daemon.wire() as wire:
        for _ in range(3):
            wire.send(KNOWN)
            answer = wire.answer()
            assert answer.ok()["result"] == 908
            assert answer.headers["X-Request-Id"] == "ab"
        wire.send(KNOWN.replace(old, new, 1))
        answer = wire.answer()
    assert (answer.json()["result"] if answer.status == 200 else answer.status) == expected


@pytest.mark.parametrize("end", [b"\0\0", b"\0\n", b"\n\n"])
def test_a_head_whose_lines_end_otherwise_is_not_the_one_before(daemon, end):
    """libmicrohttpd leaves the same bytes of both, and a NUL for the colon as well: but the second one
    has no length, so that its body would be a request."""
    body = SMUGGLED[: len(PAIR)].ljust(len(PAIR))
    hidden = KNOWN[: -len(PAIR)].replace(b"\r\nContent-Length:", end + b"Content-Length\0")
    assert hidden.count(b"Content-Length\0") == 1
    with daemon.wire() as wire:
        wire.send(KNOWN)
        assert wire.answer().ok()["result"] == 908
        wire.send(hidden + body + SMUGGLED)
        answers = wire.answers_until_closed()
    assert [answer.status for answer in answers] == [400]
