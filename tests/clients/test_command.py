"""dotd-dot: files in, value and bits out, and what its exit status says."""

import os
import subprocess
import sys

import numpy
import pytest

from client import PROGRAM_S, ROOT
from planted import raw_result


def run(*words, **environment):
    """(exit status, lines of output, what was said of errors)"""
    done = subprocess.run(
        [sys.executable, "-m", "dotd_client.command", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        env=os.environ | {"PYTHONPATH": str(ROOT / "clients/python")} | environment,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.fixture
def files(tmp_path):
    """files(a, b) saves arrays as .npy and gives their paths."""

    def save(*arrays, version=None):
        paths = []
        for i, values in enumerate(arrays):
            paths.append(tmp_path / f"{i}.npy")
            with open(paths[-1], "wb") as file:
                numpy.lib.format.write_array(file, values, version)
        return paths

    return save


@pytest.mark.parametrize(
    "code", ["f2", "f4", ">f4", "f8", "i1", "u1", "i4", "i8", ">i8", "c8", "c16"]
)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_files_of_every_type_and_version_are_read(url, files, code, version):
    paths = files(numpy.array([1, 2, 3], code), numpy.array([4, 5, 6], code), version=version)
    status, lines, errors = run(*paths, "--url", url)
    kind = numpy.dtype(code).kind
    expected = {
        "f": ["32.0", "0x4040000000000000"],
        "i": ["32", "0x0000000000000020"],
        "u": ["32", "0x0000000000000020"],
        "c": ["(32+0j)", "[0x4040000000000000, 0x0000000000000000]"],
    }
    assert (status, lines, errors) == (0, expected[kind], "")


def test_batches_and_wide_integers_have_all_their_digits(url, files):
    big = numpy.array([[2**63 - 1], [-1]], "i8")
    status, lines, _ = run(*files(big, big), DOTD_URL=url)
    assert status == 0
    assert lines[0] == f"[{(2**63 - 1) ** 2}, 1]"
    assert lines[1] == f"[0x{(2**63 - 1) ** 2:048x}, 0x0000000000000001]"


def test_raw_files_need_a_type(url, tmp_path):
    paths = [tmp_path / "a.f32", tmp_path / "b.f32"]
    for path in paths:
        path.write_bytes(numpy.array([3, 4], "<f4").tobytes())
    assert run(*paths, "--url", url, "--dtype=float32")[:2] == (0, ["25.0", "0x4039000000000000"])
    status, lines, errors = run(*paths, "--url", url)
    assert (status, lines) == (2, []) and "--dtype" in errors


def test_words_of_16_bits_are_what_dtype_says(url, files):
    words = (numpy.array([1.5, -2], "f4").view("u4") >> 16).astype("u2")
    status, lines, _ = run(*files(words, words.view("V2")), "--url", url, "--dtype=bfloat16")
    assert (status, lines[0]) == (0, "6.25")


def test_empty_files_are_empty_vectors(url, tmp_path):
    (tmp_path / "none").write_bytes(b"")
    words = [tmp_path / "none", tmp_path / "none", "--url", url, "--dtype=float64"]
    assert run(*words)[:2] == (0, ["0.0", "0x0000000000000000"])


def test_options_reach_the_service(url, files):
    paths = files(numpy.array([1j]), numpy.array([1j]))
    assert run(*paths, "--url", url)[1][0] == "(-1+0j)"
    assert run(*paths, "--url", url, "--conjugate")[1][0] == "(1+0j)"
    paths = files(numpy.array([0.1]), numpy.array([1.0]))
    words = ["--url", url, "--result-dtype=float16", "--device=cpu", "--accuracy=exact"]
    assert run(*paths, *words)[1] == ["0.0999755859375", "0x2e66"]


def test_a_token_is_sent(plant, files):
    server = plant(raw_result(1.0), raw_result(1.0))
    paths = files(numpy.array([1.0]), numpy.array([1.0]))
    assert run(*paths, "--url", server.url, "--token=abc")[0] == 0
    assert run(*paths, "--url", server.url, DOTD_TOKEN="abc")[0] == 0
    assert all("Authorization: Bearer abc" in head for _, head, _ in server.requests)


def test_a_refusal_is_status_1(url, files):
    status, lines, errors = run(*files(numpy.ones(2), numpy.ones(3)), "--url", url)
    assert (status, lines) == (1, []) and "length-mismatch" in errors
    status, _, errors = run(*files(numpy.ones(2), numpy.ones(2)), "--url", "http://127.0.0.1:1")
    assert status == 1 and "127.0.0.1:1" in errors and errors.count("\n") == 1


def header(text, version=1):
    body = text.encode()
    size = len(body).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + body


@pytest.mark.parametrize(
    "content, word",
    [
        (b"\x93NUMPY", "version"),
        (header("", 4), "version"),
        (header("x" * 70000, 2), "70000"),
        (header("nonsense("), "header"),
        (header("__import__('os').abort()"), "header"),
        (header("{'descr': '<f4'}"), "header"),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + bytes(8), "|O"),
        (header("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}"), "records"),
        (header("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}") + bytes(4), "Fortran"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "shape"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}") + bytes(7), "7 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_none_is_status_2(url, tmp_path, content, word):
    path = tmp_path / "bad.npy"
    path.write_bytes(content)
    status, lines, errors = run(path, path, "--url", url)
    assert (status, lines) == (2, []) and word in errors and "Traceback" not in errors


@pytest.mark.parametrize(
    "words", [[], ["a.npy"], ["/nonesuch", "/nonesuch"], ["a", "b", "--dtype=float31"]]
)
def test_a_wrong_command_line_is_status_2(words):
    status, lines, errors = run(*words)
    assert (status, lines) == (2, []) and "Traceback" not in errors


def test_help_names_what_there_is():
    status, lines, _ = run("--help")
    assert status == 0 and "--dtype" in "\n".join(lines)
