"""The command line: what dotd prints, what it refuses, and how it says so."""

import os
import re
import socket
import subprocess

import pytest

from client import DEADLINE_S, REPORT, ROOT, SANITIZERS, Daemon

CONFIG = ROOT / "config" / "dotd.ini"


@pytest.fixture
def dotd(binary):
    """dotd("--help", DOTD_LISTEN=...) runs it to its end."""

    def run(*arguments, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DOTD_")}
        result = subprocess.run(
            [str(binary), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            env=environment | SANITIZERS | variables,
        )
        assert not REPORT.search(result.stderr), result.stderr
        return result

    return run


def refused(result, status, *words):
    """One line on stderr with these words in it, nothing on stdout, and this exit status."""
    assert result.stdout == ""
    assert re.fullmatch(r"dotd: [^\n]*\n", result.stderr), result.stderr
    for word in words:
        assert str(word) in result.stderr
    assert result.returncode == status, result.stderr


def printed(result):
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout


def test_help_fits_80_columns_and_names_the_settings_of_the_file(dotd):
    text = printed(dotd("--help"))
    assert max(map(len, text.splitlines())) <= 80
    names = re.findall(r"^(\w+) = ", CONFIG.read_text(), re.MULTILINE)
    assert len(names) > 20
    for name in names:
        assert f"\n  --{name.replace('_', '-')}=" in text


def test_version_names_the_libraries(dotd):
    project = re.search(r"project\(dotd VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert re.fullmatch(
        re.escape(f"dotd {project} ")
        + r"\(libmicrohttpd \d+\.\d+\.\d+, jansson \d+\.\d+(\.\d+)?, (with|without) CUDA\)\n",
        printed(dotd("--version")),
    )


def test_shipped_file_is_what_print_config_prints(dotd):
    assert printed(dotd("--print-config")) == CONFIG.read_text()


def test_shipped_file_is_in_order(dotd):
    assert printed(dotd("--check-config", CONFIG)) == f"{CONFIG}: ok\n"


def test_printed_config_holds_what_is_in_force_and_reads_back(dotd, tmp_path):
    path = tmp_path / "dotd.ini"
    path.write_text("[devices]\nqueue_jobs = 11\nbatch_jobs = 12\ninline_terms = 13\n")
    text = printed(
        dotd(
            "--print-config", "--config", path, "--inline_terms", "33",
            DOTD_BATCH_JOBS="22", DOTD_INLINE_TERMS="23", DOTD_MAX_BODY_BYTES="1572864",
        )
    )
    for line in ("queue_jobs = 11", "batch_jobs = 22", "inline_terms = 33",
                 "max_body_bytes = 1536KiB"):
        assert f"\n{line}\n" in text
    path.write_text(text)
    assert printed(dotd("--print-config", f"--config={path}")) == text
    assert printed(dotd("--print-config", DOTD_CONFIG=str(path))) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limits]\nmax_body_byte = 1\n", [":2:", "max_body_byte;", "did you mean max_body_bytes?"]),
        ("[limits]\nqueue_jobs = 1\n", [":2:", "queue_jobs belongs in [devices]"]),
        ("[limit]\nmax_body_bytes = 1\n", [":2:", "no section [limit]", "[limits]?"]),
        ("[devices]\n\nqueue_jobs = 0\n", [":3:", "queue_jobs = 0", "1 to 1048576"]),
        ("[devices]\nqueue_jobs\n", [":2:", "neither [section] nor name = value"]),
        ("[log]\nlog_level = loud\n", [":2:", "debug|info|warning|error"]),
    ],
)
def test_bad_file_is_refused_by_line(dotd, tmp_path, text, words):
    path = tmp_path / "dotd.ini"
    path.write_text(text)
    refused(dotd("--check-config", path), 1, path, *words)
    refused(dotd("--config", path), 1, path, *words)


def test_missing_file_is_refused(dotd, tmp_path):
    for flag in ("--check-config", "--config"):
        refused(dotd(flag, tmp_path / "none.ini"), 1, tmp_path / "none.ini", "No such file")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--queue-job=5"], ["--queue-job;", "did you mean --queue-jobs?"]),
        (["--queue-jobs=many"], ["--queue-jobs = many", "1 to 1048576"]),
        (["--queue-jobs"], ["--queue-jobs needs a value"]),
        (["--version=2"], ["--version takes no value"]),
        (["-x"], ["-x is not a flag", "--help"]),
        (["config/dotd.ini"], ["config/dotd.ini is not a flag"]),
        (["--listen=localhost"], ["localhost", "host:port"]),
    ],
)
def test_wrong_flags_exit_with_2(dotd, arguments, words):
    refused(dotd(*arguments), 2, *words)


def test_wrong_variables_exit_with_1(dotd):
    refused(dotd(DOTD_QUEUE_JOB="5"), 1, "DOTD_QUEUE_JOB;", "did you mean DOTD_QUEUE_JOBS?")
    refused(dotd(DOTD_QUEUE_JOBS="5\n6"), 1, "DOTD_QUEUE_JOBS = 5?6", "1 to 1048576")


def test_taken_port_is_one_clear_line(dotd):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        result = dotd("--listen", address)
        refused(result, 1)
        assert result.stderr == f"dotd: cannot listen on {address}: address already in use\n"


def test_unknown_host_is_one_clear_line(dotd):
    refused(dotd("--listen=192.0.2.1:0"), 1, "cannot listen on 192.0.2.1:0: cannot assign")


@pytest.mark.parametrize("supervise", ["on", "off"])
def test_nothing_gets_the_number_of_a_closed_stderr(binary, tmp_path, supervise):
    wrapper = tmp_path / "dotd-closed"
    wrapper.write_text(f'#!/bin/sh\nexec "{binary}" "$@" <&- 2>&-\n')
    wrapper.chmod(0o755)
    daemon = Daemon(wrapper, tmp_path / "stderr", supervise=supervise, access_log="on")
    try:
        pid = daemon.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            pids = [pid, *map(int, children.read().split())]
        assert len(pids) == (2 if supervise == "on" else 1)
        for number in (0, 2):
            assert {os.readlink(f"/proc/{p}/fd/{number}") for p in pids} == {"/dev/null"}
        for _ in range(20):  # each is a line of the log
            assert daemon.get("/livez").status == 200
    finally:
        daemon.stop()


def test_full_disk_is_not_success(binary):
    with open("/dev/full", "w") as full:
        result = subprocess.run([str(binary), "--help"], stdout=full, timeout=DEADLINE_S)
    assert result.returncode == 1


@pytest.mark.every_build
def test_service_manager_is_told_of_start_and_stop(binary, tmp_path):
    path = str(tmp_path / "notify")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DOTD_")}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(DEADLINE_S)
        with open(tmp_path / "stderr", "wb") as stderr:
            process = subprocess.Popen(
                [str(binary), "--listen=127.0.0.1:0"],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=environment | SANITIZERS
                | {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"},
            )
        try:
            heard = [manager.recv(100) for _ in range(3)]
            assert heard == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
            process.terminate()
            while (last := manager.recv(100)) == b"WATCHDOG=1":
                pass
            assert last == b"STOPPING=1"
            assert process.wait(timeout=DEADLINE_S) == 0
        finally:
            process.kill()
            process.wait()
    assert not REPORT.search((tmp_path / "stderr").read_text())


def test_more_connections_than_descriptors_are_lowered_with_a_warning(binary, tmp_path):
    """Without the right to raise the limit, as anyone but root is; /v1/limits says what is left."""
    keep = "setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource" if os.geteuid() == 0 else ""
    wrapper = tmp_path / "dotd-600"
    wrapper.write_text(f'#!/bin/sh\nulimit -n 600\nexec {keep} "{binary}" "$@"\n')
    wrapper.chmod(0o755)
    daemon = Daemon(wrapper, tmp_path / "stderr", http_threads=2, cuda="off")
    try:
        possible = daemon.get("/v1/limits").ok()["settings"]["max_connections"]
        assert 100 < possible < 600
        assert f'"wanted":16384,"possible":{possible},"file_limit":600' in daemon.stderr()
    finally:
        daemon.stop()


@pytest.mark.release
@pytest.mark.parametrize("option", ["-v", "-d"])
def test_the_memory_budget_keeps_to_a_limit_of_the_process(binary, tmp_path, option):
    """A sanitizer needs more address space than there is memory, so this is for other builds."""
    limit_kib = 1 << 20
    wrapper = tmp_path / "dotd-1g"
    wrapper.write_text(f'#!/bin/sh\nulimit {option} {limit_kib}\nexec "{binary}" "$@"\n')
    wrapper.chmod(0o755)
    if subprocess.run([wrapper, "--version"], capture_output=True).returncode != 0:
        pytest.skip("built with a sanitizer")
    daemon = Daemon(wrapper, tmp_path / "stderr", http_threads=2, cuda="off")
    try:
        budget = daemon.get("/v1/limits").ok()["settings"]["memory_budget_bytes"]
        assert 1 << 20 < budget <= limit_kib * 1024 // 4
        assert daemon.raw(bytes(budget // 2), "dtype=f4").ok()["n"] == budget // 16
    finally:
        daemon.stop()
