"""What a test sees of the two processes: their log, their numbers, and clients that keep asking."""

import http.client
import json
import os
import threading

from client import ask, poll

BODY = '{"a":[1,2,3],"b":[4,5,6]}'
JSON = {"Content-Type": "application/json"}


def events(daemon, name):
    """The log's lines of one kind, in order. A line that is being written is not looked at."""
    lines = [line for line in daemon.stderr().splitlines(keepends=True) if line.endswith("}\n")]
    return [found for found in map(json.loads, lines) if found["event"] == name]


def wait_event(daemon, name, count=1):
    """The count-th line of a kind, once it is there."""
    poll(lambda: len(events(daemon, name)) >= count, f"{count} times {name}")
    return events(daemon, name)[count - 1]


def wait_alone(daemon, generation):
    """Until that worker is ready and all before it have ended. One that leaves goes on accepting for a
    moment after the next is ready, so until then either may answer."""
    wait_event(daemon, "worker_ready", generation)
    wait_event(daemon, "worker_ended", generation - 1)


def worker(daemon):
    """What /v1/status says of the worker that answers."""
    return daemon.get("/v1/status").ok()["worker"]


def worker_pid(daemon, generation=None):
    """The process of a generation; of the last that was ready, unless it is named."""
    if generation is None:
        generation = events(daemon, "worker_ready")[-1]["generation"]
    return next(
        line["pid"] for line in events(daemon, "worker_started") if line["generation"] == generation
    )


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter: it went after open()
        return False


class Client(threading.Thread):
    """Asks on kept-alive connections until stopped. As every HTTP client does, it asks once more on a
    new connection when a used one turns out to have been closed before a byte of an answer came."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon_under_test = daemon
        self.right, self.failures = 0, []
        self.stopped = threading.Event()

    def _once(self, connection):
        answer = ask(connection, "POST", "/v1/dot", BODY, JSON)
        assert answer.status == 200 and json.loads(answer.body)["result"] == 32.0, answer.body
        self.right += 1
        return answer.headers["Connection"] != "close"

    def _connection(self):
        """Asks on one connection, as long as it is kept."""
        connection, is_used = self.daemon_under_test.connect(), False
        try:
            while not self.stopped.is_set():
                is_kept = self._once(connection)
                if not is_kept:
                    return
                is_used = True
        except (http.client.RemoteDisconnected, ConnectionError):
            if not is_used:
                raise
        finally:
            connection.close()

    def run(self):
        while not self.stopped.is_set():
            try:
                self._connection()
            except Exception as error:  # each is counted, whatever it is
                self.failures.append(repr(error))


class Load:
    """Clients that ask all at once, inside a with."""

    def __init__(self, daemon, count=6):
        self.clients = [Client(daemon) for _ in range(count)]

    def __enter__(self):
        for client in self.clients:
            client.start()
        self.wait_progress()
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.stopped.set()
        for client in self.clients:
            client.join()

    def wait_progress(self):
        """Until every client has had right answers again."""
        before = [client.right for client in self.clients]
        poll(
            lambda: all(client.right >= n + 3 for client, n in zip(self.clients, before)),
            "answers for every client",
        )

    def failures(self):
        return [failure for client in self.clients for failure in client.failures]
