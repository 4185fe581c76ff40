"""dotd and its rivals: how each is had, started, asked and stopped."""

import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import bodies

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build/rivals"
CORES = len(os.sched_getaffinity(0))
START_S = 60
STARTS = 3  # at most: on a busy machine PyTriton's parts may miss the second they give each other
STOP_S = 15

JSON = "application/json"
RAW = "application/octet-stream"


class Unavailable(Exception):
    """Why a server takes no part in a row."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One that runs from its first row to the end of the run."""

    name = None

    def __init__(self):
        self.process = None
        self.port = None
        self.failure = None

    def start(self):
        """Unless it runs already. A failure is final, and told for every row."""
        if self.failure is not None:
            raise self.failure
        for attempts_left in reversed(range(STARTS)):
            if self.process is not None:
                break
            try:
                self.launch()
                self.wait()
            except Unavailable as reason:
                is_launched = self.process is not None
                self.stop()
                if attempts_left == 0 or not is_launched:
                    self.failure = reason
                    raise

    def spawn(self, *command, **environment):
        """In a process group of its own, with one thread of BLAS: there is a process a core."""
        with open(self.log(), "wb") as log:
            self.process = subprocess.Popen(
                list(map(str, command)),
                cwd=BUILD,
                env={
                    **os.environ,
                    "OPENBLAS_NUM_THREADS": "1",
                    "PYTHONPATH": str(HERE),
                    **environment,
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def log(self):
        return BUILD / f"{self.name}.log"

    def wait(self):
        """Until it answers one small request rightly."""
        small = bodies.Case("start", "", "json", "1024ths", 4, (), (), 0)
        deadline = time.monotonic() + START_S
        while True:
            try:
                return self.check(small)
            except Unavailable as reason:
                if self.process.poll() is not None:
                    raise Unavailable(f"does not start: {self.complaint()}") from None
                if time.monotonic() > deadline:
                    raise Unavailable(f"is not ready after {START_S} s: {reason}") from None
            time.sleep(0.1)

    def complaint(self):
        """The last line of its log that tells of an error, or its last line."""
        lines = self.log().read_text(errors="replace").strip().splitlines()
        errors = [line for line in lines if re.search("error|not found", line, re.IGNORECASE)]
        return (errors or lines or [f"exit status {self.process.returncode}"])[-1].strip()

    def check(self, case):
        """Asks once, and judges the answer."""
        path, body, content_type, json_bytes = self.request(case)
        headers = {"Content-Type": content_type}
        if json_bytes:
            headers["Inference-Header-Content-Length"] = str(json_bytes)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"does not answer: {error}") from None
        finally:
            connection.close()
        shown = text[:200].decode(errors="replace")
        if answer.status != 200:
            raise Unavailable(f"answers {answer.status}: {shown}")
        try:
            result = float(self.result(json.loads(text)))
        except (ValueError, TypeError, LookupError):
            raise Unavailable(f"answers {shown}") from None
        if not bodies.is_right(case, result):
            raise Unavailable(f"answers {result}, and {bodies.expected(case)} is right")

    def processor_s(self):
        """Of all its processes so far."""
        ticks = 0
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has just ended
            if int(fields[2]) == self.process.pid:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # the group is this server's own
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process = None

    def request(self, case):
        """(path, body, Content-Type, bytes of JSON before binary tensors or None) for this case."""
        if case.form == "json":
            return "/json", bodies.plain_json(case), JSON, None
        return "/binary", bodies.plain_binary(case), RAW, None

    def result(self, answer):
        return answer["result"]


class Dotd(Server):
    name = "dotd"

    def __init__(self, binary):
        super().__init__()
        self.binary = binary.resolve()

    def launch(self):
        self.port = free_port()
        self.spawn(
            self.binary, f"--listen=127.0.0.1:{self.port}", "--log-level=warning", "--cuda=off"
        )

    def request(self, case):
        _, body, content_type, _ = super().request(case)
        path = "/v1/dot" if case.form == "json" else "/v1/dot?dtype=float32"
        return path, body, content_type, None

    def versions(self):
        return subprocess.check_output([self.binary, "--version"], text=True).splitlines()[0]


class PythonServer(Server):
    """One in a virtual environment of its own."""

    packages = []
    shown = []  # the packages whose versions are told

    def venv(self):
        return ROOT / f"build/rivals-venv-{self.name}"

    def python(self):
        return self.venv() / "bin/python"

    def install(self):
        mark = self.venv() / "complete"
        if mark.exists():
            return
        create = ["/usr/bin/python3", "-m", "venv", self.venv()]
        fill = [self.venv() / "bin/pip", "install", "-q", "--disable-pip-version-check"]
        for command in (create, [*fill, *self.packages]):
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            if done.returncode != 0:
                lines = (done.stderr or done.stdout).strip().splitlines()
                raise Unavailable(f"cannot be installed: {lines[-1] if lines else command[-1]}")
        mark.touch()

    def launch(self):
        self.install()
        self.serve()

    def versions(self):
        if not self.python().exists():
            return f"{self.name}: not installed"
        script = (
            "import sys, importlib.metadata as m;"
            "print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
        )
        command = [self.python(), "-c", script, *self.shown]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else f"{self.name}: not installed"


class FastApi(PythonServer):
    name = "fastapi"
    packages = ["fastapi", "orjson", "numpy", "uvicorn[standard]"]
    shown = ["fastapi", "uvicorn", "uvloop", "httptools", "orjson", "numpy"]

    def serve(self):
        self.port = free_port()
        self.spawn(
            self.venv() / "bin/uvicorn",
            "fastapi_server:app",
            "--host=127.0.0.1",
            f"--port={self.port}",
            f"--workers={CORES}",
            "--loop=uvloop",
            "--http=httptools",
            "--no-access-log",
            "--log-level=warning",
        )


class MlServer(PythonServer):
    name = "mlserver"
    packages = ["mlserver", "uvloop<0.22"]  # with a later one its workers die (MLServer 1.7)
    shown = ["mlserver", "uvloop", "orjson", "numpy"]

    def serve(self):
        folder = BUILD / "mlserver"
        folder.mkdir(exist_ok=True)
        self.port = free_port()
        settings = {
            "MLSERVER_HOST": "127.0.0.1",
            "MLSERVER_HTTP_PORT": self.port,
            "MLSERVER_GRPC_PORT": free_port(),
            "MLSERVER_METRICS_PORT": free_port(),
            "MLSERVER_METRICS_DIR": folder / "metrics",
            "MLSERVER_ENVIRONMENTS_DIR": folder / "environments",
            "MLSERVER_DEBUG": "false",
            "MLSERVER_PARALLEL_WORKERS": CORES,
            "MLSERVER_MODEL_NAME": "dot",
            "MLSERVER_MODEL_IMPLEMENTATION": "mlserver_model.Dot",
        }
        command = [self.venv() / "bin/mlserver", "start", folder]
        self.spawn(*command, **{name: str(value) for name, value in settings.items()})

    def request(self, case):
        path = "/v2/models/dot/infer"
        if case.form == "json":
            return path, bodies.json_tensors(case, [case.n]), JSON, None
        body, size = bodies.plain_binary(case), 4 * case.n
        as_base64 = {"content_type": "base64"}
        tensors = [
            bodies.tensor(
                name, [1], "BYTES", data=[base64.b64encode(half).decode()], parameters=as_base64
            )
            for name, half in (("a", body[:size]), ("b", body[size:]))
        ]
        return path, bodies.inference(tensors), JSON, None

    def result(self, answer):
        return answer["outputs"][0]["data"][0]


class PyTriton(PythonServer):
    name = "pytriton"
    packages = ["nvidia-pytriton"]
    shown = ["nvidia-pytriton", "tritonclient", "numpy"]

    def serve(self):
        folder = BUILD / "pytriton"
        shutil.rmtree(folder, ignore_errors=True)  # it wants a new one
        self.port = free_port()
        arguments = [folder, self.port, free_port(), free_port()]
        self.spawn(self.python(), HERE / "pytriton_server.py", *arguments)

    def request(self, case):
        if case.form == "json":
            return "/v2/models/dot_fp64/infer", bodies.json_tensors(case, [1, case.n]), JSON, None
        body, json_bytes = bodies.binary_tensors(case, [1, case.n])
        return "/v2/models/dot/infer", body, RAW, json_bytes

    def result(self, answer):
        return answer["outputs"][0]["data"][0]


class Node(Server):
    name = "node"

    def launch(self):
        node = shutil.which("node") or shutil.which("nodejs")
        if node is None:
            raise Unavailable("cannot be had: install it with apt-get install nodejs")
        self.port = free_port()
        self.spawn(node, HERE / "node_server.js", self.port, CORES)

    def versions(self):
        node = shutil.which("node") or shutil.which("nodejs")
        return (
            "node " + subprocess.check_output([node, "--version"], text=True).strip()
            if node
            else "no node"
        )


RIVALS = {server.name: server for server in (FastApi(), MlServer(), Node(), PyTriton())}
