"""The console's files: who is given them, under which policy, and how a client keeps them."""

import re

import pytest

from client import ROOT

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
WEB = ROOT / "clients/web"
ASSETS = sorted(
    str(path.relative_to(WEB)) for path in WEB.rglob("*.*") if path.suffix in TYPES
)  # fmt: skip
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}


def policy_of(answer):
    parts = answer.headers["Content-Security-Policy"].split("; ")
    return dict(part.split(" ", 1) for part in parts)


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/html;q=0.5,*/*"])
def test_programs_get_the_index(daemon, accept):
    answer = daemon.get("/", {"Accept": accept} if accept else {})
    assert answer.ok()["service"] == "dotd"
    assert answer.headers["Vary"] == "Accept"


@pytest.mark.every_build
@pytest.mark.parametrize("accept", [BROWSER["Accept"], "text/html", "text/*, */*;q=0.1"])
def test_browsers_get_the_page(daemon, accept):
    answer = daemon.get("/", {"Accept": accept})
    assert (answer.status, answer.headers["Content-Type"]) == (200, TYPES[".html"])
    assert answer.headers["Vary"] == "Accept"
    assert answer.body == (WEB / "index.html").read_bytes()


@pytest.mark.parametrize("path", [path for path in ASSETS if path != "index.html"])
def test_every_file_is_served_as_it_is(daemon, path):
    answer = daemon.get(f"/console/{path}")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == TYPES[path[path.rindex(".") :]]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert policy_of(answer) == POLICY
    assert answer.body == (WEB / path).read_bytes()


def test_the_page_lets_nothing_come_from_elsewhere(daemon):
    answer = daemon.get("/", BROWSER)
    assert policy_of(answer) == POLICY
    page = answer.body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=", page)
    assert not re.search(r"(?:src|href)=\"(?!console/|#)", page)


@pytest.mark.parametrize("match", ["{}", "W/{}", '"other", {}', "*"])
def test_what_a_client_has_is_not_sent_again(daemon, match):
    tag = daemon.get("/console/main.js").headers["ETag"]
    answer = daemon.get("/console/main.js", {"If-None-Match": match.format(tag)})
    assert (answer.status, answer.body) == (304, b"")
    assert int(answer.headers["Content-Length"]) == (WEB / "main.js").stat().st_size
    assert answer.headers["ETag"] == tag
    assert answer.headers["Cache-Control"] == "no-cache"


def test_another_tag_gets_the_file(daemon):
    tags = {daemon.get(f"/console/{path}").headers["ETag"] for path in ("main.js", "api.js")}
    assert len(tags) == 2
    answer = daemon.get("/console/main.js", {"If-None-Match": '"0123456789abcdef"'})
    assert answer.status == 200 and answer.body


def test_a_connection_goes_on_after_304(daemon):
    tag = daemon.get("/console/main.js").headers["ETag"]
    with daemon.wire() as wire:
        for _ in range(2):
            wire.send(
                f"GET /console/main.js HTTP/1.1\r\nHost: x\r\nIf-None-Match: {tag}\r\n\r\n".encode()
            )
            assert wire.answer(to_head=True).status == 304


@pytest.mark.parametrize(
    "path", ["/console/", "/console/index.html", "/console/nothing.js", "/console/../route.c"]
)
def test_nothing_else_is_there(daemon, path):
    daemon.get(path).problem(404, "not-found")


def test_files_take_no_other_methods(daemon):
    answer = daemon.call("POST", "/console/main.js", b"")
    answer.problem(405, "method-not-allowed")
    assert answer.headers["Allow"] == "GET, HEAD"
    head = daemon.call("HEAD", "/console/main.js")
    assert head.status == 200 and head.body == b""
    assert int(head.headers["Content-Length"]) == (WEB / "main.js").stat().st_size


def test_without_the_console_everybody_gets_the_index(start_daemon):
    daemon = start_daemon(console="off", cuda="off")
    assert daemon.get("/", BROWSER).ok()["service"] == "dotd"
    problem = daemon.get("/console/main.js").problem(404, "not-found")
    assert "switched off" in problem["detail"]
