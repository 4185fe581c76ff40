"""Fixtures of the HTTP tests, for daemons that are killed, hung and replaced."""

import importlib.util
import pathlib
import sys

HTTP = pathlib.Path(__file__).resolve().parents[1] / "http"
sys.path.insert(0, str(HTTP))

# by its path: this file has the same name
_spec = importlib.util.spec_from_file_location("http_fixtures", HTTP / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)

pytest_configure = _fixtures.pytest_configure
binary = _fixtures.binary
start_daemon = _fixtures.start_daemon
start_faulty = _fixtures.start_faulty
