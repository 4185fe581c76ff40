"""What is measured: servers started on a port of their own choosing, and programs in C beside them."""

import contextlib
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from report import BUILD, ROOT


def require(binary, *commands):
    """Ends with what is missing: the program to measure, or one that measuring takes."""
    if not pathlib.Path(binary).exists():
        sys.exit(f"{binary} is not there: deploy/run --once builds dotd")
    for command in commands:
        if shutil.which(command) is None:
            sys.exit(f"{command} is missing: apt-get install {command}")


def compile_beside(name):
    """One of this folder's C programs that are no part of the tree's build."""
    BUILD.mkdir(parents=True, exist_ok=True)
    command = ["pkg-config", "--cflags", "--libs", "libmicrohttpd", "jansson"]
    flags = subprocess.check_output(command, text=True).split()
    source = ROOT / f"tests/bench/{name}.c"
    command = ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O3", "-o", BUILD / name, source, *flags]
    subprocess.run([*command, "-pthread"], check=True)
    return BUILD / name


class Server:
    """Ready once it has named its port, as its first line of output."""

    def __init__(self, *command):
        began = time.perf_counter()
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r"(\d+)\s*$", self.process.stdout.readline())[1])
        self.start_ms = (time.perf_counter() - began) * 1e3

    def processes(self):
        pid = self.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def memory(self, field, file="smaps_rollup"):
        """Bytes of each of its processes."""
        texts = [pathlib.Path(f"/proc/{pid}/{file}").read_text() for pid in self.processes()]
        return [int(re.search(rf"^{field}:\s+(\d+) kB", text, re.M)[1]) << 10 for text in texts]

    def processor_s(self):
        """What the threads of the process that was started have run so far."""
        threads = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def dotd(binary, *options):
    return Server(binary, "--listen=127.0.0.1:0", "--log-level=warning", *options)


@contextlib.contextmanager
def running(server):
    try:
        yield server
    finally:
        server.stop()
