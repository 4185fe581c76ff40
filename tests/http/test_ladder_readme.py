"""The table of gpu/kernels/README.md is the table of the code, as GET /v1/kernels tells it."""

import re

from client import ROOT

ROW = re.compile(r"^\| \[`([a-z-]+)`\]\((\S+)\) \| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \|$", re.M)


WORDS = ["Idea", "Cost", "Order", "Error", "Needs", "Source", "Measured"]


def test_the_readme_lists_the_rungs_that_there_are(start_daemon):
    rungs = start_daemon().get("/v1/kernels").json()["kernels"]
    rows = ROW.findall((ROOT / "gpu/kernels/README.md").read_text())
    assert rows == [
        (
            rung["name"],
            rung["source"].removeprefix("gpu/kernels/"),
            rung["idea"],
            rung["point"],
            rung["arithmetic"],
            rung["order"],
            str(rung["max_n"] or "any"),
        )
        for rung in rungs
    ]


def test_every_rung_says_its_cost_and_its_error_in_its_source(start_daemon):
    for rung in start_daemon().get("/v1/kernels").json()["kernels"]:
        head = (ROOT / rung["source"]).read_text().split("*/")[0]
        assert [word for word in WORDS if f" * {word} " not in head] == [], rung["source"]
