"""NVIDIA's perf_analyzer, unchanged, holds every answer that it gets to what it should be."""

import os

import pytest

import perf_analyzer

N = 300
REQUESTS = 200


@pytest.fixture
def measure(daemon, tmp_path):
    program = os.environ.get("DOTD_PERF_ANALYZER")
    if program is None:
        pytest.skip("perf_analyzer cannot be had")

    def run(model, *options, wrong=0):
        data = tmp_path / "data.json"
        perf_analyzer.make_data(data, model, N, wrong)
        options = ["--request-count", REQUESTS, *options]
        return perf_analyzer.run(program, daemon.port, model, N, data, *options)

    return run


@pytest.mark.parametrize("form", ["binary", "json"])
@pytest.mark.parametrize("model", perf_analyzer.KINDS)
def test_every_answer_is_right(measure, model, form):
    options = ["--input-tensor-format", form, "--output-tensor-format", form]
    (row,) = measure(model, *options, "--concurrency-range", 4)
    assert (row["Concurrency"], float(row["Inferences/Second"]) > 0) == ("4", True)


def test_it_reads_the_statistics_of_the_model(measure):
    (row,) = measure("dot", "--concurrency-range", 2)
    assert float(row["Server Compute Infer"]) >= 0 and float(row["Client Send"]) >= 0


def test_a_wrong_answer_would_be_noticed(measure):
    with pytest.raises(perf_analyzer.Refused, match="Output doesn't match expected output"):
        measure("dot", wrong=1)
