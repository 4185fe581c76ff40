#!/usr/bin/env python3
"""No source is compiled with a flag that changes results. Usage: flags.py compile_commands.json"""

import json
import re
import sys

CHANGES_RESULTS = re.compile(
    r"\s(-Ofast|-ffast-math|-funsafe-math-optimizations|-ffinite-math-only|-fassociative-math"
    r"|-freciprocal-math|-mdaz-ftz|-?-use_fast_math|-?-ftz[= ]true|-?-fmad[= ]true"
    r"|-ffp-contract=(fast|on))\b"
)

with open(sys.argv[1], encoding="utf-8") as file:
    commands = json.load(file)
assert commands, "nothing is compiled"
bad = [entry["file"] for entry in commands if CHANGES_RESULTS.search(entry["command"])]
loose = [
    entry["file"]
    for entry in commands
    if entry["file"].endswith(".c") and "-ffp-contract=off" not in entry["command"]
]
assert not bad, f"compiled with a flag that changes results: {bad}"
assert not loose, f"compiled without -ffp-contract=off: {loose}"
print(f"{len(commands)} commands, none changes results")
