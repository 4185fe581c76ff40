"""SIGUSR2 and SIGHUP: a new program and new settings, under load, without a failed request."""

import os
import shutil
import signal

import pytest

from client import Daemon, get, poll
from workers import BODY, Load, events, wait_alone, wait_event, worker, worker_pid


@pytest.fixture
def start_copy(binary, tmp_path):
    """start_copy() runs a copy of the program that a test may replace."""
    path = tmp_path / "dotd"
    shutil.copy2(binary, path)
    started = []

    def start(**options):
        started.append(Daemon(path, tmp_path / "stderr-copy", **options))
        return path, started[-1]

    yield start
    for daemon in started:
        daemon.stop()


def limits(daemon):
    return daemon.get("/v1/limits").ok()["settings"]


@pytest.mark.every_build
def test_a_worker_is_replaced_five_times_under_load_and_no_request_fails(start_daemon):
    daemon = start_daemon()
    with Load(daemon) as load:
        for generation in range(2, 7):
            daemon.signal(signal.SIGUSR2)
            wait_event(daemon, "worker_ready", generation)
            load.wait_progress()
        assert load.failures() == []
    assert load.failures() == []
    wait_alone(daemon, 6)
    assert worker(daemon) == {
        "generation": 6,
        "restarts_total": 0,
        "last_reason": "replaced on request",
    }
    ends = {line["how"] for line in events(daemon, "worker_ended")}
    assert ends == {"exited with status 0"}


def test_a_replaced_worker_answers_on_open_connections_and_closes_them(start_daemon):
    daemon = start_daemon()
    wires = [daemon.wire() for _ in range(2)]
    for wire in wires:
        wire.send(get("/v1/status"))
        assert wire.answer().ok()["worker"]["generation"] == 1
    asking, silent = wires
    daemon.signal(signal.SIGUSR2)
    wait_event(daemon, "draining")
    is_kept = True
    while is_kept:
        asking.send(get("/v1/status"))
        answer = asking.answer()
        assert answer.ok()["worker"]["generation"] == 1
        is_kept = answer.headers["Connection"] is None
    assert answer.headers["Connection"].lower() == "close"
    assert asking.answer() is None and silent.answer() is None
    assert worker(daemon)["generation"] == 2
    for wire in wires:
        wire.close()


def test_replacements_that_are_asked_for_at_once_come_one_after_another(start_daemon):
    daemon = start_daemon()
    for _ in range(3):
        daemon.signal(signal.SIGUSR2)
    wait_event(daemon, "worker_ready", 2)
    assert daemon.dot(BODY).ok()["result"] == 32.0


def test_the_program_at_the_path_is_what_comes_next(start_copy):
    path, daemon = start_copy()
    os.rename(path, path.with_name("dotd-old"))
    shutil.copy2(path.with_name("dotd-old"), path)
    os.kill(worker_pid(daemon), signal.SIGKILL)
    wait_event(daemon, "worker_ready", 2)
    of_crash = os.stat(f"/proc/{worker_pid(daemon, 2)}/exe").st_ino
    assert of_crash == os.stat(path.with_name("dotd-old")).st_ino  # nobody asked for the new one
    daemon.signal(signal.SIGUSR2)
    wait_event(daemon, "worker_ready", 3)
    of_request = os.stat(f"/proc/{worker_pid(daemon, 3)}/exe").st_ino
    assert of_request == os.stat(path).st_ino
    os.kill(worker_pid(daemon, 3), signal.SIGKILL)
    wait_event(daemon, "worker_ready", 4)
    assert os.stat(f"/proc/{worker_pid(daemon, 4)}/exe").st_ino == of_request


def test_a_program_that_does_not_start_changes_nothing(start_copy):
    path, daemon = start_copy()
    os.rename(path, path.with_name("dotd-old"))
    path.write_bytes(b"\x7fELF, but not really")
    path.chmod(0o755)
    daemon.signal(signal.SIGUSR2)
    assert "cannot execute" in wait_event(daemon, "renewal_failed")["error"]
    path.unlink()
    daemon.signal(signal.SIGUSR2)
    assert "No such file" in wait_event(daemon, "renewal_failed", 2)["error"]
    assert worker(daemon)["generation"] == 1


@pytest.fixture
def config_file(tmp_path):
    """config_file("queue_jobs = 5") writes settings of [devices], [limits] and [log]."""
    path = tmp_path / "dotd.ini"

    def write(devices="", limits="", log=""):
        path.write_text(f"[devices]\n{devices}\n[limits]\n{limits}\n[log]\n{log}\n")
        return path

    return write


@pytest.mark.every_build
@pytest.mark.parametrize("supervise", ["on", "off"])
def test_sighup_applies_what_is_live_and_names_the_rest(start_daemon, config_file, supervise):
    path = config_file("queue_jobs = 50", "max_body_bytes = 1000")
    daemon = start_daemon(config=path, supervise=supervise)
    with daemon.wire() as kept:
        kept.send(get("/livez"))
        assert kept.answer().status == 200
        config_file("queue_jobs = 60", "max_body_bytes = 2000\nidle_timeout_ms = 70000",
                    "access_log = on")
        daemon.signal(signal.SIGHUP)
        line = wait_event(daemon, "config_reloaded")
        assert line["applied"] == "max_body_bytes, idle_timeout_ms, access_log"
        assert line["needs_restart"] == "queue_jobs"
        kept.send(get("/v1/limits"))
        settings = kept.answer().ok()["settings"]
    assert settings["max_body_bytes"] == 2000
    assert settings["idle_timeout_ms"] == 70000
    assert settings["queue_jobs"] == 50
    poll(
        lambda: "/v1/limits" in [line["path"] for line in events(daemon, "request")],
        "a line for the request",
    )
    daemon.dot(b" " * 1999 + b"{").problem(400, "bad-syntax")
    daemon.dot(b" " * 2001).problem(413, "too-large")


@pytest.mark.parametrize("supervise", ["on", "off"])
def test_a_bad_file_changes_nothing_and_is_named(start_daemon, config_file, supervise):
    path = config_file(limits="max_body_bytes = 1000")
    daemon = start_daemon(config=path, supervise=supervise)
    config_file(limits="max_body_bytes = 2000\nmax_results = many")
    daemon.signal(signal.SIGHUP)
    error = wait_event(daemon, "config_refused")["error"]
    assert error.startswith(f"{path}:5: max_results = many")
    assert limits(daemon)["max_body_bytes"] == 1000


def test_a_worker_that_dies_is_followed_by_one_with_the_last_good_settings(
    start_daemon, config_file
):
    path = config_file(limits="max_body_bytes = 1000")
    daemon = start_daemon(config=path)
    config_file(limits="max_body_bytes = 2000")
    daemon.signal(signal.SIGHUP)
    wait_event(daemon, "config_reloaded")
    config_file(limits="max_body_bytes = none")
    os.kill(worker_pid(daemon), signal.SIGKILL)
    wait_event(daemon, "worker_ready", 2)
    assert limits(daemon)["max_body_bytes"] == 2000


def test_sigusr2_applies_what_sighup_only_names(start_daemon, config_file):
    path = config_file("queue_jobs = 50")
    daemon = start_daemon(config=path)
    config_file("queue_jobs = 60")
    daemon.signal(signal.SIGUSR2)
    wait_alone(daemon, 2)
    assert limits(daemon)["queue_jobs"] == 60
    config_file("queue_jobs = none")
    daemon.signal(signal.SIGUSR2)
    assert "queue_jobs = none" in wait_event(daemon, "renewal_failed")["error"]
    assert limits(daemon)["queue_jobs"] == 60


def test_sighup_during_a_replacement_reaches_the_new_worker(start_daemon, config_file):
    path = config_file(limits="max_body_bytes = 1000")
    daemon = start_daemon(config=path)
    config_file(limits="max_body_bytes = 2000")
    daemon.signal(signal.SIGUSR2)
    wait_event(daemon, "worker_started", 2)
    config_file(limits="max_body_bytes = 3000")
    daemon.signal(signal.SIGHUP)
    wait_event(daemon, "worker_ready", 2)
    poll(lambda: limits(daemon)["max_body_bytes"] == 3000, "the settings of SIGHUP")
    assert len(events(daemon, "config_refused")) == 0
