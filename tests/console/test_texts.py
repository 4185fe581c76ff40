"""Every visible word of the console is in one file a language, and each file has all of them."""

import json
import re

import pytest

from client import ROOT

WEB = ROOT / "clients/web"
LANGUAGES = ["en", "ru", "uk"]


def texts(language):
    def unique(pairs):
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), sorted(key for key in keys if keys.count(key) > 1)
        return dict(pairs)

    path = WEB / f"texts/{language}.json"
    return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)


def sources():
    """The page and its scripts without comments."""
    for path in [WEB / "index.html", *sorted(WEB.glob("*.js"))]:
        text = path.read_text(encoding="utf-8")
        yield path.name, re.sub(r"/\*.*?\*/|(?<=[ ;,])// [^\n]*", "", text, flags=re.DOTALL)


def uses():
    """Keys in quotes, and patterns of those that are put together: `flag.${name}`."""
    quoted, built = {}, {}
    for name, text in sources():
        # A key stands in quotes by itself and has a dot; an address ends in a known suffix.
        for key in re.findall(r'"([a-z]+(?:\.[a-z0-9_-]+)+)"', text):
            if not re.search(r"\.(js|json)$", key):
                quoted[key] = name
        for template in re.findall(r"`([a-z]+\.[^`/ ]*\$\{[^`]*)`", text):
            built[re.sub(r"\$\{.*?\}(?=\.|$)|\$\{.*\}", "\0", template)] = name
    return quoted, built


def matcher(template):
    return re.compile(re.escape(template).replace(re.escape("\0"), r"[\w-]+") + r"\Z")


def placeholders(text):
    return sorted(re.findall(r"\{(\w+)\}", text))


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_language_has_the_same_texts(language):
    english, other = texts("en"), texts(language)
    assert list(english) == list(other)
    for key in english:
        assert placeholders(english[key]) == placeholders(other[key]), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_empty(language):
    assert [key for key, text in texts(language).items() if not text.strip()] == []


def test_ukrainian_and_russian_are_not_english_left_over():
    english = texts("en")
    for language in ("ru", "uk"):
        cyrillic = re.compile("[а-яіїєґё]", re.IGNORECASE)
        left = [
            key
            for key, text in texts(language).items()
            if not cyrillic.search(text) and re.search("[a-z]{3}", english[key], re.IGNORECASE)
        ]
        assert left == [], language
    assert not [key for key, text in texts("uk").items() if re.search("[ыэъё]", text)]
    assert not [key for key, text in texts("ru").items() if re.search("[іїєґ]", text)]


def test_every_text_that_is_used_exists():
    quoted, built = uses()
    missing = {key: name for key, name in quoted.items() if key not in texts("en")}
    assert missing == {}
    for template, name in built.items():
        assert any(matcher(template).match(key) for key in texts("en")), (template, name)


def test_every_text_is_used():
    quoted, built = uses()
    patterns = [matcher(template) for template in built]
    unused = [
        key
        for key in texts("en")
        if key not in quoted and not any(pattern.match(key) for pattern in patterns)
    ]
    assert unused == []


def test_the_page_itself_holds_no_words():
    page = re.sub(
        r"<noscript>.*?</noscript>|<title>.*?</title>",
        "",
        (WEB / "index.html").read_text(),
        flags=re.DOTALL,
    )
    words = re.sub(r"<[^>]*>", " ", page).split()
    assert words == ["a·b", "dotd"]


def test_every_rung_is_told_in_every_language(daemon):
    rungs = [rung["name"] for rung in daemon.get("/v1/kernels").ok()["kernels"]]
    told = {f"kernel.{rung}.{what}" for rung in rungs for what in ("idea", "point")}
    assert told == {key for key in texts("en") if key.startswith("kernel.")}


def test_problems_are_those_of_the_server(daemon):
    errors = {problem["name"] for problem in daemon.get("/problems/").ok()["problems"]}
    own = {
        "status",
        "fault",
        "unreachable",
        "limit",
        "fixed",
        "number",
        "npy",
        "columns",
        "whole",
        "types",
        "lengths",
    }
    told = {key.removeprefix("problem.") for key in texts("en") if key.startswith("problem.")}
    assert told - own <= errors
