"""Counts behaviours in JUnit files of ctest (whose programs are cmocka's) and of pytest.

Usage: tally.py FILE... Counts what was skipped, a line a program; names what failed; closes with one
line of counts, and exits with 1 when anything failed or nothing ran.
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree


def of_program(case, build):
    """(outcome, name) of each behaviour of a cmocka program; of the program when it has none."""
    output = case.findtext("system-out") or ""
    found = re.findall(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] (\w+)$", output, re.MULTILINE)
    words = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
    outcomes = {name: words[word] for word, name in found}
    broken = case.find("failure") is not None or case.get("status") == "fail"
    if not outcomes or (broken and "failed" not in outcomes.values()):
        outcomes["(the program itself)"] = "failed" if broken else "passed"
    if case.find("skipped") is not None:
        outcomes = {"(the program itself)": "skipped"}
    return [(outcome, f"{build} {case.get('name')}: {name}") for name, outcome in outcomes.items()]


def of_pytest(case, build):
    """(outcome, name) of one test."""
    name = f"{build} {case.get('classname')}: {case.get('name')}"
    if case.find("failure") is not None or case.find("error") is not None:
        return [("failed", name)]
    return [("skipped" if case.find("skipped") is not None else "passed", name)]


def outcomes_of(path):
    build, kind = path.rsplit("/", 1)[-1].removesuffix(".xml").split("-")
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        return [("failed", f"{build} {kind}: no report ({error})")]
    read = of_program if kind == "unit" else of_pytest
    return [outcome for case in root.iter("testcase") for outcome in read(case, build)]


def main(paths):
    outcomes = [outcome for path in paths for outcome in outcomes_of(path)]
    skipped = collections.Counter(
        name.split(": ", 1)[0] for outcome, name in outcomes if outcome == "skipped"
    )
    for program, count in skipped.items():
        print(f"skipped: {program}, {count}")
    for outcome, name in outcomes:
        if outcome == "failed":
            print(f"failed: {name}")
    counts = {
        word: sum(outcome == word for outcome, _ in outcomes)
        for word in ("passed", "failed", "skipped")
    }
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
