"""GET /metrics: what it counts, and that Prometheus can read it."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import string
import subprocess

import pytest

from client import ROOT, ask, get, poll, post
from exposition import Exposition
from load import occupied, queued

TYPE = "text/plain; version=0.0.4; charset=utf-8"
STAGES = {
    "receive": "dotd_receive_duration_seconds",
    "decode": "dotd_decode_duration_seconds",
    "queue": "dotd_queue_duration_seconds",
    "copy_in": "dotd_compute_input_duration_seconds",
    "compute": "dotd_compute_duration_seconds",
    "copy_out": "dotd_compute_output_duration_seconds",
    "total": "dotd_inference_duration_seconds",
}
COUNTS = {
    "queued_jobs": "dotd_queue_length",
    "queued_bytes": "dotd_queue_bytes",
    "jobs_total": "dotd_jobs_total",
    "batches_total": "dotd_executions_total",
    "slices_total": "dotd_slices_total",
    "rejected_total": "dotd_jobs_rejected_total",
    "unfair_total": "dotd_jobs_unfair_total",
    "expired_total": "dotd_jobs_expired_total",
    "cancelled_total": "dotd_jobs_cancelled_total",
    "rerouted_total": "dotd_jobs_rerouted_total",
}
BOUNDS = [digit * 10**power / 1e6 for power in range(8) for digit in (1, 2, 5)] + [60]


def read(daemon):
    answer = daemon.get("/metrics")
    assert (answer.status, answer.headers["Content-Type"]) == (200, TYPE)
    return Exposition(answer.body.decode())


def settled(daemon):
    """The page once no request but its own is on its way: twice, as a page is no snapshot, and what
    ended while the first was written may be in one line of it and not in another."""
    pages = []

    def ask_once():
        pages.append(read(daemon))
        return [page.get("dotd_inflight_requests") for page in pages[-2:]] == [1, 1]

    poll(ask_once, "requests are never over")
    return pages[-1]


class Growth:
    """What the samples have grown by since."""

    def __init__(self, daemon):
        self.daemon, self.before = daemon, settled(daemon)

    def now(self):
        self.after = settled(self.daemon)
        return self

    def of(self, name, **labels):
        return self.after.get(name, **labels) - self.before.get(name, **labels)

    def requests(self, path, method, code):
        return self.of("dotd_http_requests_total", path=path, method=method, code=str(code))

    def outcome(self, name):
        return self.of("dotd_inference_requests_total", outcome=name)

    def reasons(self):
        """{reason: how many}, of those that there were."""
        series = self.after.series("dotd_refusals_total")
        grown = {labels["reason"]: self.of("dotd_refusals_total", **labels) for labels, _ in series}
        return {reason: count for reason, count in grown.items() if count}


# ---- what is on the page ---------------------------------------------------------------------


def test_every_family_is_helped_typed_and_there_once(daemon):
    page = read(daemon)  # Exposition asserts the form
    wanted = {
        "dotd_http_requests_total": "counter",
        "dotd_inference_requests_total": "counter",
        "dotd_inferences_total": "counter",
        "dotd_executions_total": "counter",
        "dotd_refusals_total": "counter",
        "dotd_placements_total": "counter",
        "dotd_batch_size": "histogram",
        "dotd_queue_length": "gauge",
        "dotd_queue_bytes": "gauge",
        "dotd_inflight_requests": "gauge",
        "dotd_connections": "gauge",
        "dotd_request_body_bytes_total": "counter",
        "dotd_response_body_bytes_total": "counter",
        "dotd_clients_left_total": "counter",
        "dotd_jobs_expired_total": "counter",
        "dotd_jobs_cancelled_total": "counter",
        "dotd_jobs_rerouted_total": "counter",
        "dotd_memory_budget_bytes": "gauge",
        "dotd_memory_used_bytes": "gauge",
        "dotd_worker_restarts_total": "counter",
        "dotd_build_info": "gauge",
        "process_cpu_seconds_total": "counter",
        "process_resident_memory_bytes": "gauge",
        "process_start_time_seconds": "gauge",
    } | {name: "histogram" for name in STAGES.values()}
    assert wanted.items() <= page.families.items()


def test_the_reference_names_every_family(start_daemon, fake_nvml):
    reference = (ROOT / "proto/API.md").read_text()
    families = wait_nvml(start_daemon(variables=fake_nvml), 1).families
    assert [name for name in families if f"`{name}`" not in reference] == []


def test_histograms_are_cumulative_and_complete(daemon):
    daemon.dot({"a": [1], "b": [2]}).ok()
    page = settled(daemon)
    for name in STAGES.values():
        buckets = page.buckets(name)
        assert [bound for bound, _ in buckets] == BOUNDS + [float("inf")]
        counts = [count for _, count in buckets]
        assert counts == sorted(counts) and counts[-1] == page.get(f"{name}_count") > 0
    sizes = page.buckets("dotd_batch_size", device="cpu")
    assert [bound for bound, _ in sizes] == [2.0**i for i in range(17)] + [float("inf")]
    assert sizes[-1][1] == page.get("dotd_batch_size_count", device="cpu")
    assert page.get("dotd_batch_size_sum", device="cpu") == page.get("dotd_jobs_total", device="cpu")


def test_every_error_of_the_table_is_a_reason(daemon):
    text = (ROOT / "proto/error.h").read_text()
    names = set(re.findall(r'X\(ERR_\w+, \d+, "([a-z0-9-]+)"', text)) - {"ok"}
    assert names == {labels["reason"] for labels, _ in read(daemon).series("dotd_refusals_total")}


def test_build_and_process_are_told(daemon):
    page, status = read(daemon), daemon.get("/v1/status").ok()
    assert page.series("dotd_build_info") == [
        ({name if name != "dotd" else "version": v for name, v in status["versions"].items()}, 1)
    ]
    assert page.get("dotd_ready") == 1
    assert page.get("process_resident_memory_bytes") > 1 << 20
    started = page.get("process_start_time_seconds")
    assert read(daemon).get("process_start_time_seconds") == started > 1.7e9
    assert page.get("dotd_memory_budget_bytes") == status["memory"]["budget_bytes"]


def test_head_and_other_methods_are_as_elsewhere(daemon):
    head = daemon.call("HEAD", "/metrics")
    assert (head.status, head.headers["Content-Type"], head.body) == (200, TYPE, b"")
    assert int(head.headers["Content-Length"]) > 0
    answer = daemon.call("POST", "/metrics")
    answer.problem(405, "method-not-allowed")
    assert answer.headers["Allow"] == "GET, HEAD"
    daemon.get("/metrics/").problem(404, "not-found")
    assert "/metrics" in daemon.get("/").ok()["see"]


# ---- what is counted -------------------------------------------------------------------------


@pytest.mark.every_build
def test_requests_are_counted_by_route_method_and_code(start_daemon):
    daemon = start_daemon(http_threads=2)
    grown = Growth(daemon)
    bodies = [json.dumps({"a": [1, 2], "b": [3, 4]})] * 3
    answers = [daemon.dot(body) for body in bodies]
    answers.append(daemon.get("/v1/dot?a=1&b=2"))
    answers.append(daemon.dot("nonsense"))
    answers.append(daemon.dot({"a": [1], "b": [2, 3]}))
    answers.append(daemon.call("DELETE", "/v1/dot"))
    answers.append(daemon.get("/problems/busy"))
    answers.append(daemon.get("/problems/nonesuch"))
    answers.append(daemon.get("/nonesuch"))
    answers.append(daemon.call("HEAD", "/livez"))
    answers.append(daemon.call("HEAD", "/nonesuch"))
    grown.now()
    assert grown.requests("/v1/dot", "POST", 200) == 3
    assert grown.requests("/v1/dot", "GET", 200) == 1
    assert grown.requests("/v1/dot", "POST", 400) == 1
    assert grown.requests("/v1/dot", "POST", 422) == 1
    assert grown.requests("/v1/dot", "other", 405) == 1
    assert grown.requests("/problems/", "GET", 200) == 1
    assert grown.requests("/problems/", "GET", 404) == 1
    assert grown.requests("other", "GET", 404) == 1
    assert grown.requests("/livez", "HEAD", 200) == 1
    assert grown.requests("other", "HEAD", 404) == 1
    pages = grown.requests("/metrics", "GET", 200)
    total = grown.after.total("dotd_http_requests_total")
    assert total - grown.before.total("dotd_http_requests_total") == len(answers) + pages
    assert (grown.outcome("success"), grown.outcome("invalid")) == (4, 3)
    assert grown.reasons() == {
        "bad-syntax": 1,
        "length-mismatch": 1,
        "method-not-allowed": 1,
        "not-found": 3,
    }


def test_bytes_of_bodies_are_counted_but_not_what_head_leaves_out(start_daemon):
    daemon = start_daemon()
    names = "dotd_request_body_bytes_total", "dotd_response_body_bytes_total"
    body = json.dumps({"a": [1, 2], "b": [3, 4]})
    with contextlib.closing(daemon.connect()) as connection:  # in order: each is over before the next
        settled(daemon)
        first = ask(connection, "GET", "/metrics")
        answers = [ask(connection, "POST", "/v1/dot", body) for _ in range(5)]
        ask(connection, "HEAD", "/v1/status")
        last = ask(connection, "GET", "/metrics")
    before, after = (Exposition(page.body.decode()) for page in (first, last))
    received, sent = (after.get(name) - before.get(name) for name in names)
    assert received == 5 * len(body)
    assert sent == len(first.body) + sum(len(answer.body) for answer in answers)


def test_stages_are_observed_once_a_result_and_add_up(start_daemon):
    daemon = start_daemon()
    for _ in range(7):
        daemon.dot({"a": [1, 2], "b": [3, 4]}).ok()
    daemon.dot("nonsense")
    page = settled(daemon)
    assert {page.get(f"{name}_count") for name in STAGES.values()} == {7}
    parts = [name for stage, name in STAGES.items() if stage != "total"]
    ns = {name: round(page.get(f"{name}_sum") * 1e9) for name in STAGES.values()}
    assert sum(ns[name] for name in parts) == ns[STAGES["total"]] > 0


def test_placements_and_results_are_counted_by_accuracy(start_daemon):
    daemon = start_daemon()
    daemon.dot({"a": [[1], [2], [3]], "b": [4]}).ok()
    daemon.dot({"a": [1], "b": [4], "accuracy": "fast"}).ok()
    daemon.dot({"pairs": [{"a": [1], "b": [2]}] * 5, "accuracy": "fast"}).ok()
    daemon.dot({"a": [1], "b": [4], "dtype": "int8", "accuracy": "fast"}).ok()  # exact in any case
    page = settled(daemon)
    exact, fast = {"device": "cpu", "accuracy": "exact"}, {"device": "cpu", "accuracy": "fast"}
    assert page.get("dotd_placements_total", **exact) == 2
    assert page.get("dotd_placements_total", **fast) == 2
    assert page.get("dotd_inferences_total", **exact) == 4
    assert page.get("dotd_inferences_total", **fast) == 6


def test_status_tells_quantiles_of_the_stages(start_daemon):
    daemon = start_daemon()
    none = daemon.get("/v1/status").ok()["stages"]
    assert list(none) == list(STAGES)
    assert {tuple(stage.values()) for stage in none.values()} == {(0, 0, 0, 0)}
    for _ in range(5):
        daemon.dot({"a": [1, 2], "b": [3, 4]}).ok()
    stages = daemon.wait_status(lambda status: status["stages"]["total"]["count"] == 5)["stages"]
    assert {stage["count"] for stage in stages.values()} == {5}
    for stage in stages.values():
        assert list(stage) == ["count", "p50_us", "p90_us", "p99_us"]
        assert 0 <= stage["p50_us"] <= stage["p90_us"] <= stage["p99_us"]
    assert stages["total"]["p50_us"] > 0


def test_a_body_that_comes_too_late_is_counted(start_daemon):
    daemon = start_daemon(body_timeout_ms=100)
    grown = Growth(daemon)
    with daemon.wire() as wire:
        wire.send(post("/v1/dot", "{}", "Content-Type: application/json")[:-1])
        wire.answer().problem(408, "receive-timeout")
    grown.now()
    assert grown.requests("/v1/dot", "POST", 408) == 1
    assert grown.outcome("timeout") == 1
    assert grown.reasons() == {"receive-timeout": 1}


@pytest.mark.every_build
def test_what_waits_and_how_it_ends_is_counted(start_faulty):
    daemon = start_faulty(queue_jobs=2, client_share_percent=100)
    cuda = {"device": "cuda:0"}
    grown = Growth(daemon)
    with contextlib.ExitStack() as stack:
        kept, late, left = (stack.enter_context(daemon.wire()) for _ in range(3))
        with occupied(daemon):
            late.send(get("/v1/dot?a=1&b=1&device=cuda&timeout_ms=300"))
            late.answer().problem(504, "deadline")
            kept.send(get("/v1/dot?a=1&b=1&device=cuda"))
            left.send(get("/v1/dot?a=1&b=1&device=cuda"))
            daemon.wait_status(lambda status: queued(status) == 2)
            page, device = read(daemon), daemon.get("/v1/devices").ok()["devices"][1]
            assert page.get("dotd_queue_length", **cuda) == 2
            assert page.get("dotd_queue_bytes", **cuda) == device["queued_bytes"] >= 2 * 16
            daemon.get("/v1/dot?a=1&b=1&device=cuda").problem(503, "busy")
            left.reset()
            daemon.wait_status(lambda status: status["requests"]["clients_left_total"] == 1)
        kept.answer().ok()
    grown.now()
    assert grown.requests("/v1/dot", "GET", 200) == 2  # kept, and the one that occupied
    assert grown.requests("/v1/dot", "GET", 499) == 1
    assert grown.of("dotd_clients_left_total") == 1
    outcomes = {"success": 2, "timeout": 1, "rejected": 1, "canceled": 1, "invalid": 0, "error": 0}
    assert {name: grown.outcome(name) for name in outcomes} == outcomes
    assert grown.reasons() == {"busy": 1, "deadline": 1}
    assert grown.of("dotd_jobs_rejected_total", **cuda) == 1
    assert grown.of("dotd_jobs_expired_total", **cuda) == 1
    assert grown.of("dotd_jobs_cancelled_total", **cuda) == 1
    assert grown.of("dotd_jobs_total", **cuda) == grown.of("dotd_batch_size_sum", **cuda) == 2
    assert grown.of("dotd_executions_total", **cuda) == grown.of("dotd_batch_size_count", **cuda)
    assert grown.after.get("dotd_queue_length", **cuda) == 0


def test_work_of_a_device_that_failed_is_counted_where_it_was_done(start_faulty):
    daemon = start_faulty(supervise="off")
    grown = Growth(daemon)
    daemon.fault.say("memory")
    assert daemon.get("/v1/dot?a=1&b=2&device=cuda").ok()["device"] == "cpu"
    daemon.fault.say("")
    grown.now()
    assert grown.of("dotd_jobs_rerouted_total", device="cuda:0") == 1
    assert grown.of("dotd_placements_total", device="cpu", accuracy="exact") == 1
    assert grown.of("dotd_placements_total", device="cuda:0", accuracy="exact") == 0


def test_devices_are_counted_alike_on_both_pages(start_faulty):
    daemon = start_faulty(queue_jobs=2, client_share_percent=50)  # of a client one job may wait
    daemon.dot({"a": [1] * 70_000, "b": [1] * 70_000, "device": "cuda"}).ok()
    daemon.fault.say("memory")
    assert daemon.get("/v1/dot?a=1&b=2&device=cuda").ok()["device"] == "cpu"
    daemon.fault.say("")
    with occupied(daemon), daemon.wire() as kept:
        kept.send(get("/v1/dot?a=1&b=1&device=cuda"))
        daemon.wait_status(lambda status: queued(status) == 1)
        daemon.get("/v1/dot?a=1&b=1&device=cuda").problem(503, "busy")
        page, devices = read(daemon), daemon.get("/v1/devices").ok()["devices"]
    for device in devices:
        told = {field: page.get(name, device=device["id"]) for field, name in COUNTS.items()}
        assert {field: device[field] for field in COUNTS} == told
    assert devices[1]["slices_total"] > 0
    counted = ("queued_jobs", "rejected_total", "unfair_total", "rerouted_total")
    assert {field: devices[1][field] for field in counted} == dict.fromkeys(counted, 1)


def test_a_worker_that_dies_is_counted_by_its_successor(start_daemon):
    daemon = start_daemon()
    before = read(daemon)
    assert before.get("dotd_worker_restarts_total") == 0
    (worker,) = daemon.workers()
    os.kill(worker, signal.SIGKILL)
    daemon.wait_status(lambda status: status["worker"]["generation"] == 2)
    page = read(daemon)
    assert page.get("dotd_worker_restarts_total") == 1
    assert page.get("dotd_worker_generation") == 2
    assert page.get("process_start_time_seconds") >= before.get("process_start_time_seconds")


# ---- what clients cannot do ------------------------------------------------------------------


def test_clients_cannot_make_series(start_daemon):
    daemon, connection = (started := start_daemon()), started.connect()
    chance = random.Random(5)
    methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]

    def ask_anything(count):
        for _ in range(count):
            word = "".join(chance.choices(string.ascii_letters + '%22\\{}"=,', k=12))
            path = chance.choice(["/", "/v1/dot/", "/problems/", "/metrics/", "/v1/dot?id="]) + word
            ask(connection, chance.choice(methods), path, headers={"X-Request-Id": word})

    ask_anything(200)
    before = settled(daemon)
    ask_anything(400)
    connection.close()
    after = settled(daemon)
    labels = [labels for labels, _ in after.series("dotd_http_requests_total")]
    paths = {"/v1/dot", "/problems/", "/metrics", "/readyz", "/", "other"}
    assert {"/problems/", "other"} <= {found["path"] for found in labels} <= paths
    assert {found["method"] for found in labels} == {"GET", "HEAD", "POST", "other"}
    assert len(after.samples) < len(before.samples) + 10  # rare codes may have come up first now


# ---- for Prometheus --------------------------------------------------------------------------


def promtool(text):
    """promtool's verdict on the page, which asserts that it finds nothing."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool (Debian's prometheus) is not installed")
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.every_build
def test_promtool_finds_nothing_on_a_busy_daemon(start_faulty):
    daemon = start_faulty(queue_jobs=2)
    for accuracy in ("exact", "fast"):
        daemon.dot({"a": [[1], [2]], "b": [3], "accuracy": accuracy}).ok()
    daemon.dot({"a": [1], "b": [2], "device": "cuda"}).ok()
    daemon.raw(bytes(1 << 20), "dtype=float32").ok()
    daemon.dot("nonsense")
    daemon.get('/"quoted"')
    with occupied(daemon):
        promtool(daemon.get("/metrics").body.decode())
    promtool(daemon.get("/metrics").body.decode())


@pytest.fixture
def fake_nvml(tmp_path):
    """The environment of a daemon that finds the fake in the place of NVIDIA's library."""
    library = tmp_path / "libnvidia-ml.so.1"
    source = ROOT / "tests/nvml/fake.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_LIBRARY_PATH": str(tmp_path)}


def wait_nvml(daemon, up):
    """The page once the library has been asked."""
    seen = []

    def ask_once():
        seen[:] = [read(daemon)]
        return seen[0].series("dotd_nvml_up") == [({}, up)]

    poll(ask_once, "nothing from NVML")
    return seen[0]


@pytest.mark.every_build
def test_devices_of_nvidia_are_told_as_nvml_tells(start_daemon, fake_nvml):
    daemon = start_daemon(variables=fake_nvml)
    page = wait_nvml(daemon, 1)
    first, second = {"gpu_uuid": "GPU-fake-0"}, {"gpu_uuid": "GPU-fake-1"}
    assert page.series("dotd_gpu_info") == [
        (first | {"name": 'Fake "quoted" \\ device'}, 1),
        (second | {"name": "Fake"}, 1),
    ]
    assert page.series("dotd_gpu_memory_used_bytes") == [(first, 1e9), (second, 2e9)]
    assert page.series("dotd_gpu_memory_size_bytes") == [(first, 150e9), (second, 150e9)]
    assert page.series("dotd_gpu_utilization_ratio") == [(first, 0.37), (second, 0.37)]
    assert page.series("dotd_gpu_temperature_celsius") == [(first, 40), (second, 41)]
    assert page.series("dotd_gpu_power_watts") == [(first, 98.765), (second, 98.765)]
    assert page.series("dotd_gpu_ecc_errors_total") == [
        (first | {"type": "corrected"}, 7),
        (first | {"type": "uncorrected"}, 1),
        (second | {"type": "uncorrected"}, 1),
    ]
    assert page.get("dotd_nvml_age_seconds") < 60
    text = daemon.get("/metrics").body.decode()
    assert re.search(r'\ndotd_gpu_memory_used_bytes\{gpu_uuid="GPU-fake-0"\} 1000000000\n', text)
    promtool(text)


@pytest.mark.parametrize("mood, up", [("1", 0), ("2", 0), ("4", 1)])
def test_what_nvml_does_not_tell_is_not_there(start_daemon, fake_nvml, mood, up):
    daemon = start_daemon(variables=fake_nvml | {"FAKE_NVML": mood})
    page = wait_nvml(daemon, up)
    told = {name for name in page.families if name.startswith("dotd_gpu_")}
    assert told == ({"dotd_gpu_info"} if up else set())


def test_a_library_that_hangs_holds_up_neither_page_nor_end(start_daemon, fake_nvml):
    daemon = start_daemon(variables=fake_nvml | {"FAKE_NVML": "5"})
    assert not any("nvml" in name for name in read(daemon).families)
    daemon.dot({"a": [1], "b": [2]}).ok()


def test_without_cuda_nvml_is_left_alone(start_daemon, fake_nvml):
    daemon = start_daemon(variables=fake_nvml, cuda="off")
    assert not any("nvml" in name or "gpu" in name for name in read(daemon).families)
