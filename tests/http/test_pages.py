"""Everything that is served besides the dot product, and everything that is not served."""

import json
import pathlib
import re
import subprocess

import pytest

from client import PROGRAM_S, ROOT, get

PAGES = ["/", "/livez", "/readyz", "/v1/status", "/v1/devices", "/v1/limits", "/problems/"]


def errors():
    """(status, name) of every row of the table of errors."""
    text = (ROOT / "proto/error.h").read_text()
    rows = re.findall(r'X\(ERR_\w+, (\d+), "([a-z0-9-]+)"', text)
    return [(int(status), name) for status, name in rows if name != "ok"]


@pytest.mark.parametrize("page", PAGES)
def test_pages_answer_get_and_head_alike(daemon, page):
    whole, head = daemon.get(page), daemon.call("HEAD", page)
    assert (whole.status, head.status) == (200, 200)
    assert whole.body and head.body == b""
    assert head.headers["Content-Type"] == whole.headers["Content-Type"]
    assert (
        abs(int(head.headers["Content-Length"]) - len(whole.body)) < 64
    )  # counters may have grown


@pytest.mark.parametrize("page", PAGES)
def test_nothing_follows_the_head_of_a_head(daemon, page):
    with daemon.wire() as wire:
        wire.send(get(page).replace(b"GET", b"HEAD") + get("/livez", "Connection: close"))
        assert wire.answer(to_head=True).status == 200
        assert [answer.status for answer in wire.answers_until_closed()] == [200]


def test_root_names_a_call_that_works(daemon):
    call = daemon.get("/").ok()["try"]
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, timeout=PROGRAM_S)
    assert call.startswith("curl ") and json.loads(done.stdout)["result"] == 32.0, done.stderr


def test_root_lists_every_call_of_the_contract(daemon):
    """Once; but not itself, a second spelling, or what only stands below another path."""
    contract = json.loads((ROOT / "proto/openapi.json").read_text())["paths"]
    others = {"/", "/v2/", "/problems/{name}", "/console/{file}"}
    assert others < set(contract)
    assert sorted(daemon.get("/").ok()["see"]) == sorted(set(contract) - others)


def test_root_lists_no_call_that_is_switched_off(daemon, start_daemon):
    without = start_daemon(lab="off").get("/").ok()["see"]
    listed = [path for path in daemon.get("/").ok()["see"] if not path.startswith("/v1/lab/")]
    assert without == listed


def test_devices_list_the_cpu(daemon):
    devices = daemon.get("/v1/devices").ok()["devices"]
    assert [device["id"] for device in devices] == ["cpu"]
    assert devices[0]["name"] and devices[0]["kernel"]


@pytest.mark.every_build
@pytest.mark.parametrize("cuda", ["auto", "off"])
def test_the_log_says_why_no_cuda_device_is_used(start_daemon, cuda):
    """Once, when one was wanted and there is none: a GPU that goes unused would go unnoticed."""
    lines = [json.loads(line) for line in start_daemon(cuda=cuda).stderr().splitlines()]
    reasons = [line["reason"] for line in lines if line["event"] == "no_cuda"]
    devices = [line["device"] for line in lines if line["event"] == "device"]
    failed = [line["count"] for line in lines if line["event"] == "devices_failed"]
    assert devices[0] == "cpu"
    assert len(reasons) == (cuda == "auto" and devices == ["cpu"] and not failed)
    assert all(reasons)
    if not pathlib.Path("/proc/driver/nvidia").exists():
        assert set(reasons) <= {"there is no NVIDIA driver", "this program has no CUDA in it"}


def test_status_tells_state_versions_and_counts(daemon):
    status = daemon.get("/v1/status").ok()
    assert (status["state"], status["uptime_ms"] >= 0) == ("ready", True)
    assert {"dotd", "libmicrohttpd", "jansson"} <= set(status["versions"])
    assert [device["id"] for device in status["devices"]] == ["cpu"]
    before = status["requests"]
    daemon.dot({"a": [1], "b": [2]}).ok()
    daemon.dot("nonsense").problem(400, "bad-syntax")
    status = daemon.wait_status(
        lambda now: now["requests"]["answers_4xx_total"] > before["answers_4xx_total"]
    )
    assert status["requests"]["answers_2xx_total"] > before["answers_2xx_total"]


def test_limits_name_every_numeric_setting(daemon):
    limits = daemon.get("/v1/limits").ok()
    table = (ROOT / "server/config.h").read_text()
    names = set(re.findall(r"^    N\((\w+), ", table, re.MULTILINE))
    assert len(names) > 10 and names == set(limits["settings"])
    assert limits["settings"]["memory_budget_bytes"] > 0


def test_limits_name_every_bound_that_is_fixed_and_the_reference_names_them_too(daemon):
    """As the rows of limits.h have them: name, value, and what API.md says of it."""
    row = re.compile(r'X\(LIMIT_\w+, (\w+), (\d+)(?: << (\d+))?,[\s\\]+"([^"]+)"\)')
    rows = row.findall((ROOT / "proto/limits.h").read_text())
    fixed = {name: int(value) << int(shift or 0) for name, value, shift, _ in rows}
    assert len(fixed) > 20 and fixed == daemon.get("/v1/limits").ok()["fixed"]
    reference = (ROOT / "proto/API.md").read_text()
    told = re.findall(r"^\| (.+) \| (\d+) \| `(\w+)` \|$", reference, re.MULTILINE)
    for name, *_, what in rows:
        assert (what, str(fixed[name]), name) in told


@pytest.mark.parametrize("status, name", errors())
def test_every_error_has_a_page(daemon, status, name):
    answer = daemon.get(f"/problems/{name}")
    assert answer.status == 200
    assert str(status) in answer.body.decode()
    assert name in answer.body.decode()


def test_problems_are_listed(daemon):
    listed = daemon.get("/problems/").ok()["problems"]
    assert [(problem["status"], problem["name"]) for problem in listed] == errors()
    assert all(problem["title"] for problem in listed)
    assert "/problems/" in daemon.get("/").ok()["see"]


def test_problems_that_are_none_are_404(daemon):
    for name in ("ok", "nonesuch", "../livez"):
        daemon.get(f"/problems/{name}").problem(404, "not-found")


@pytest.mark.parametrize(
    "path", ["/nonesuch", "/v1", "/v1/dot/", "/v1/dotty", "/V1/dot", "//", "/livez/", "/v20"]
)
def test_other_paths_are_404(daemon, path):
    daemon.get(path).problem(404, "not-found")
    daemon.call("POST", path, b"{}").problem(404, "not-found")


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("PUT", "/v1/dot", {"GET", "HEAD", "POST"}),
        ("DELETE", "/v1/dot", {"GET", "HEAD", "POST"}),
        ("PATCH", "/v1/dot", {"GET", "HEAD", "POST"}),
        ("POST", "/livez", {"GET", "HEAD"}),
        ("POST", "/v1/status", {"GET", "HEAD"}),
        ("DELETE", "/", {"GET", "HEAD"}),
        ("PUT", "/problems/busy", {"GET", "HEAD"}),
    ],
)
def test_other_methods_are_405_with_allow(daemon, method, path, allowed):
    answer = daemon.call(method, path)
    answer.problem(405, "method-not-allowed")
    named = {word.strip() for word in answer.headers["Allow"].split(",")}
    assert allowed <= named, named
    assert method not in named


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/xml",
        "application/x-numpy",
        "application/jsonx",
        "json",
        "application/+xml",
    ],
)
def test_other_body_types_are_415_and_list_those_read(daemon, content_type):
    answer = daemon.dot("{}", headers={"Content-Type": content_type})
    detail = answer.problem(415, "unsupported-media-type")["detail"]
    assert "application/json" in detail and "application/octet-stream" in detail


def test_content_encodings_are_refused_and_not_guessed(daemon):
    answer = daemon.dot({"a": [1], "b": [2]}, headers={"Content-Encoding": "br"})
    assert answer.status == 415
