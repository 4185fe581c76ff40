"""Results of a measurement: where it was made, and the file that it leaves."""

import datetime
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/bench"
CORES = len(os.sched_getaffinity(0))


def processors():
    """Of what model, and how many this process may use."""
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else platform.machine()}, {CORES} cores"


def machine(*more):
    """The machine, what else is to be named, and the commit."""
    commit = subprocess.check_output(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True
    ).strip()
    return ", ".join([processors(), f"Linux {platform.release()}", *more]) + f"; commit {commit}"


def write(name, title, text):
    """Prints a file of results and leaves it in the build folder: of those in results/, to which
    words were added, no run replaces one."""
    date = datetime.date.today().isoformat()
    path = BUILD / f"{date}-{name}-{CORES}-cores.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {title}, {date}\n\n{text}")
    print(path.read_text() + f"\nwritten to {path.relative_to(ROOT)}")
