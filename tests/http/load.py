"""A device that does as it is told (gpu/faulty.h), and so can be kept busy while a test looks."""

import contextlib
import os

from client import get, poll


class Fault:
    """The file that the device reads before each batch."""

    def __init__(self, path):
        self.path = path
        self.say("")

    def say(self, word):
        new = self.path.with_suffix(".new")
        new.write_text(word)
        os.replace(new, self.path)  # the device never sees half a word

    def is_hanging(self):
        return os.path.exists(f"{self.path}.hanging")


def queued(status):
    """Jobs that wait for the faulty device."""
    return status["devices"][1]["queued_jobs"]


@contextlib.contextmanager
def occupied(daemon):
    """Inside, the faulty device hangs with one job in hand; what asks for device=cuda waits."""
    daemon.fault.say("hang")
    with daemon.wire() as wire:
        wire.send(get("/v1/dot?a=1&b=1&device=cuda"))
        poll(daemon.fault.is_hanging, "the device does not hang")
        yield
        daemon.fault.say("")
        assert wire.answer().ok()["result"] == 1.0
