"""Fixtures: a real Chromium, and a page that must have nothing to complain of."""

import pytest

import browser as chromium
from client import ROOT, Daemon


@pytest.fixture(scope="session")
def daemon(binary, tmp_path_factory):
    """One for all; without CUDA, so that pictures are the same everywhere."""
    running = Daemon(binary, tmp_path_factory.mktemp("daemon") / "stderr", cuda="off")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    path = chromium.find()
    if path is None:
        pytest.skip("no real Chromium here (Ubuntu's package only installs a snap)")
    running = chromium.Browser(path, tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture
def open_page(browser, daemon):
    """open_page("trainer/race", width=320) is a fresh page of the console there. At the end nothing
    may have been complained of, and nothing asked from elsewhere."""
    opened = []

    def start(below, width=1280, **media):
        page = browser.new_page(width)
        opened.append(page)
        page.media(**{"prefers_reduced_motion": "reduce"} | media)
        page.open(f"http://127.0.0.1:{daemon.port}/#/{below}")
        return page

    yield start
    for page in opened:
        complaints, requests = page.complaints, page.requests
        page.close()
        assert complaints == []
        home = f"http://127.0.0.1:{daemon.port}/"
        assert [url for url in requests if not url.startswith((home, "blob:", "data:"))] == []


@pytest.fixture(scope="session")
def pictures():
    """Where screenshots go: what a person would have seen, kept beside the reports."""
    return ROOT / "build/reports/console"
