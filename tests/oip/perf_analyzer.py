"""NVIDIA's perf_analyzer: what it is given, how it is run, and what it reports."""

import csv
import json
import os
import random
import subprocess

KINDS = {"dot": float, "dot_fp64": float, "dot_int8": int}  # models whose elements JSON can hold
LIMIT_S = 60  # only a hang ever takes so long


def make_data(path, model, n, wrong=0):
    """Operands whose dot product every type holds exactly, and that product, off by `wrong`, which each
    answer is held to."""
    draw = random.Random(n)
    a, b = ([draw.randint(-4, 4) for _ in range(n)] for _ in "ab")
    product = sum(x * y for x, y in zip(a, b)) + wrong
    kind = KINDS[model]
    operands = {"a": list(map(kind, a)), "b": list(map(kind, b))}
    path.write_text(
        json.dumps({"data": [operands], "validation_data": [{"result": [kind(product)]}]})
    )


class Refused(Exception):
    """It ended without a measurement; the text is what it printed."""


def run(program, port, model, n, data, *options):
    """Returns its report, a row of text by column for each concurrency. It is right about answers only
    without --async: what is in flight when that ends counts as wrong."""
    report = data.with_suffix(".csv")
    report.unlink(missing_ok=True)
    command = [program, "-m", model, "-u", f"127.0.0.1:{port}", "-b", "1", "--input-data", data]
    command += ["--shape", f"a:{n}", "--shape", f"b:{n}", "-f", report, "--verbose-csv", *options]
    ended = subprocess.run(
        list(map(str, command)),
        env=os.environ | {"LD_LIBRARY_PATH": os.path.dirname(program)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    if not report.exists() or "had error" in ended.stdout + ended.stderr:
        raise Refused(ended.stdout + ended.stderr)
    with open(report, encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))
