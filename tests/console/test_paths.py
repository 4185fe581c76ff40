"""A person's path through each tab of the console, in a real Chromium against the real daemon."""

import json
import pathlib
import re
import subprocess

import numpy
import pytest

from client import Daemon

VIEWS = [
    "compute",
    "trainer/reduce",
    "trainer/race",
    "trainer/shift",
    "trainer/barrier",
    "trainer/rounding",
    "kernels",
    "status",
]
READY = {  # what is there once a view has got its answer
    "compute": "#result",
    "trainer/reduce": "#counts",
    "trainer/race": "#race-bars",
    "trainer/shift": "#shift .warps",
    "trainer/barrier": "#barrier .warps",
    "trainer/rounding": "#sums",
    "kernels": "#plot",
    "status": "#devices",
}
LANGUAGES = ["en", "ru", "uk"]
AUDIT = (pathlib.Path(__file__).parent / "audit.js").read_text()
CONTROLS = {
    "button", "checkbox", "combobox", "link", "radio", "searchbox", "slider", "spinbutton", "tab",
    "tablist", "textbox", "progressbar", "meter", "region", "img", "tabpanel", "group", "table",
}  # fmt: skip


def settle(page, view):
    page.has(READY[view])
    page.until("!document.querySelector('[aria-busy]')")


def audit(page, what):
    return page.run(f"{AUDIT}.{what}()")


def refusals(page):
    """The statuses that the browser noted on its console; taken off the list of complaints."""
    page.until("true")
    noted = [c for c in page.complaints if isinstance(c, dict) and c.get("source") == "network"]
    page.complaints[:] = [c for c in page.complaints if c not in noted]
    return [int(re.search(r"status of (\d+)", c["text"])[1]) for c in noted]


def compute(page, a=None, b=None):
    """Fills in what is given, computes, and waits for the answer to this request."""
    for name, words in (("a", a), ("b", b)):
        if words is not None:
            page.fill(f"#operand-{name}", words)
    page.run("document.querySelector('#answer').replaceChildren()")
    page.click("#compute button.main")
    page.until("document.querySelector('#result') || document.querySelector('#answer .problem')")


def run_line(page, folder):
    """The result that the shown command line gives in a shell, and its bits."""
    line = page.text("#curl code")
    told = subprocess.run(
        ["bash", "-ec", line + " -s"], cwd=folder, capture_output=True, text=True, check=True
    )
    answer = json.loads(told.stdout)
    return answer["result"], answer["bits"]


# ---- Compute ----


def test_two_vectors_are_multiplied_and_the_answer_told(open_page, tmp_path):
    page = open_page("compute")
    compute(page, "1 2 3", "4, 5\n6")
    assert page.text("#result") == "32"
    assert page.text("#bits") == "0x4040000000000000"
    assert page.text("#bound") == "0"
    assert "total" in page.text("#stages") and "µs" in page.text("#stages")
    assert run_line(page, tmp_path) == (32, "0x4040000000000000")


def test_json_may_nest_and_digits_are_kept(open_page, tmp_path):
    page = open_page("compute")
    page.choose("#compute .options select", "int64")
    compute(page, "[9223372036854775807]", "[2]")
    assert page.text("#result") == "18446744073709551614"
    compute(page, "[[1, 2], [3, 4]]", "[10, 1]")
    assert page.texts("#result tbody td:nth-child(2)") == ["12", "34"]
    assert run_line(page, tmp_path)[0] == [12, 34]


def test_a_rounded_result_says_so(open_page):
    page = open_page("compute")
    compute(page, "0.1", "0.1")
    assert "inexact" in page.text("#answer .chips")
    assert float(page.text("#bound")) > 0


def test_numbers_that_are_none_are_named(open_page):
    page = open_page("compute")
    compute(page, "1 2 three", "1 2 3")
    assert "three" in page.text("#answer .problem")


def test_a_refusal_is_told_in_words(open_page):
    page = open_page("compute")
    compute(page, "1 2", "1 2 3")
    words = page.text("#answer .problem")
    assert "do not match" in words and "2" in words
    assert refusals(page) == [422]
    compute(page, "1 2 3")
    assert page.text("#result") == "14"


def test_arrays_of_numpy_are_read(open_page, tmp_path):
    a, b = numpy.arange(1000, dtype="<f4"), numpy.ones(1000, dtype="<f4")
    numpy.save(tmp_path / "a.npy", a)
    numpy.save(tmp_path / "b.npy", b)
    page = open_page("compute")
    for name in "ab":
        page.give_files(f"#file-{name}", tmp_path / f"{name}.npy")
        page.until(f"document.querySelector('#held-{name}').innerText.includes('float32')")
    compute(page)
    assert page.text("#result") == "499500"
    assert run_line(page, tmp_path)[0] == 499500


def test_big_endian_matrices_are_read(open_page, tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.array([[1, 2], [3, 4]], dtype=">f8"))
    numpy.save(tmp_path / "b.npy", numpy.array([10, 1], dtype=">f8"))
    page = open_page("compute")
    for name in "ab":
        page.give_files(f"#file-{name}", tmp_path / f"{name}.npy")
        page.until(f"document.querySelector('#held-{name}').innerText.includes('float64')")
    compute(page)
    assert page.texts("#result tbody td:nth-child(2)") == ["12", "34"]
    assert run_line(page, tmp_path)[0] == [12, 34]


def test_raw_files_have_a_type_to_choose(open_page, tmp_path):
    (tmp_path / "a.raw").write_bytes(numpy.array([1.5, 0, -2], dtype="<f2").tobytes())
    (tmp_path / "b.raw").write_bytes(numpy.array([2, 7, 0.25], dtype="<f2").tobytes())
    page = open_page("compute")
    for name in "ab":
        page.give_files(f"#file-{name}", tmp_path / f"{name}.raw")
        page.until(f"document.querySelector('#held-{name}').innerText")
        page.choose(f".drop:has(#operand-{name}) select", "float16")
    compute(page)
    assert page.text("#result") == "2.5"
    assert run_line(page, tmp_path)[0] == 2.5


def test_a_file_meets_text(open_page, tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.array([1.5, numpy.inf, -0.0], dtype="<f2"))
    page = open_page("compute")
    page.give_files("#file-a", tmp_path / "a.npy")
    page.until("document.querySelector('#held-a').innerText.includes('float16')")
    compute(page, None, "1 1 1")
    assert page.text("#result") == "Infinity"


def test_a_kernel_of_the_ladder_can_be_asked_for(open_page):
    page = open_page("compute")
    page.until("document.querySelector('#compute option[value=tree-pairs]')")
    page.choose("#compute select:has(option[value=tree-pairs])", "tree-pairs")
    page.choose("#compute .options select:has(option[value=complex64])", "float32")
    page.click("#diagnostics")
    compute(page, "1 2 3", "4 5 6")
    assert page.text("#result") == "32"
    assert "tree-pairs" in page.text("#answer") and "Condition number" in page.text("#answer")


# ---- Trainer ----


def step_to(page, text):
    """Presses Step until the player stands there."""
    while page.text("#reduce .player output") != text:
        page.click("#reduce .player button:nth-of-type(3)")


def test_the_tree_is_stepped_through_on_own_numbers(open_page, pictures):
    page = open_page("trainer/reduce")
    settle(page, "trainer/reduce")
    page.fill("#reduce textarea", "1 2 3 4")
    page.fill("#reduce .field:nth-child(2) textarea", "10 10 10 10")
    page.click("#reduce button[type=submit]")
    page.until("document.querySelector('#counts').innerText.includes('100')")
    assert page.text("#reduce .player output") == "1 / 4"
    first = ".pictures section:first-child"
    assert page.texts(f"{first} .level:last-child .cell") == ["10", "20", "30", "40"]
    step_to(page, "2 / 4")
    assert page.texts(f"{first} .level:last-child .cell")[:2] == ["40", "60"]
    step_to(page, "3 / 4")
    assert page.texts(f"{first} .level:last-child .cell")[0] == "100"
    assert page.texts(f"{first} .level:last-child .cell.written.active") == ["100"]
    page.screenshot(pictures / "tree.png")
    page.click("#reduce .player button:nth-of-type(1)")
    assert page.text("#reduce .player output") == "2 / 4"
    assert page.run(f"document.querySelectorAll('{first} .level').length") == 2


def test_the_tree_plays_by_itself_to_the_end(open_page):
    page = open_page("trainer/reduce")
    settle(page, "trainer/reduce")
    page.click("#reduce .player button:nth-of-type(2)")
    page.until("document.querySelector('#reduce .player output').value === '5 / 5'")
    page.until(
        "document.querySelector('#reduce .player button:nth-of-type(2)').ariaPressed === 'false'"
    )


def test_three_schemes_stand_side_by_side_and_cost_differently(open_page, pictures):
    page = open_page("trainer/reduce", width=1400)
    settle(page, "trainer/reduce")
    page.choose("#reduce select", 1024)
    page.until("document.querySelector('#counts').innerText.includes('1,023')")
    tops = page.run("[...document.querySelectorAll('.pictures > section')].map((s) => s.offsetTop)")
    assert len(tops) == 3 and len(set(tops)) == 1
    rows = [row.split("\t") for row in page.text("#counts tbody").split("\n") if "\t" in row]
    steps, conflicts = [row[2] for row in rows], [int(row[6]) for row in rows]
    assert steps == ["10", "10", "1,023"]
    assert conflicts[0] == 0 and conflicts[1] > 0
    assert page.run("document.querySelectorAll('.warp').length") == 3 * 32
    step_to(page, "6 / 12")
    page.screenshot(pictures / "tree-1024.png")


def test_any_block_and_many_blocks_are_pictured(open_page):
    page = open_page("trainer/reduce")
    settle(page, "trainer/reduce")
    page.fill("#reduce input[type=number]", "3")
    page.choose("#reduce select:has(option[value=blocks])", "blocks")
    page.until("document.querySelector('#counts').innerText.includes('block-atomic')")
    assert page.text("#counts tbody td:nth-child(5)") == "3"
    assert "of 3" in page.text("#reduce .pictures .remark") or "Threads: 3" in page.text(
        "#reduce .pictures .remark"
    )


QUESTIONS = [  # lesson, which of its questions, what the answer must have found out
    ("reduce", 0, r"10 steps and 11 barriers.* 1,023 additions"),
    ("race", 0, r"100,000 threads added 1 each.*lost"),
    ("race", 1, r"the sum was 100,000.*1,048,576 turns.*4,096"),
    ("shift", 0, r"Of 128 values .* 0 with two.*thread \d+ read cell \d+"),
    ("barrier", 0, r"Of 64 threads 32 waited at the barrier and 32 never came"),
    ("rounding", 0, r"gave ([2-9]|1\d) different results.*condition 1\)"),
]


@pytest.mark.parametrize("lesson, place, found", QUESTIONS)
def test_an_experiment_answers_its_question(open_page, lesson, place, found):
    page = open_page(f"trainer/{lesson}")
    question = f"#{lesson} .question:nth-of-type({place + 1})"
    assert page.text(f"{question} h3").endswith("?")
    page.click(f"{question} button")
    page.until(f"document.querySelectorAll('{question} .answer p').length > 1")
    assert re.search(found, page.text(f"{question} .answer"), re.DOTALL)


def test_lost_additions_are_drawn(open_page):
    page = open_page("trainer/race")
    settle(page, "trainer/race")
    page.fill("#race input", "5000")
    page.fill("#race .field:nth-child(2) input", "3")
    page.click("#race button[type=submit]")
    page.until("document.querySelectorAll('#race-bars .bar').length === 4")
    assert "5,000 arrived, 0 lost" in page.texts("#race-bars .bar")[3]
    lost = [
        int(re.search(r"([\d,]+) lost", words)[1].replace(",", ""))
        for words in page.texts("#race-bars .bar")[:3]
    ]
    assert min(lost) > 0


def test_own_values_are_shifted_with_two_barriers(open_page):
    page = open_page("trainer/shift")
    settle(page, "trainer/shift")
    page.fill("#shift textarea", "5 7 11 NaN")
    page.click("#shift button[type=submit]")
    page.until("document.querySelectorAll('#shift .level').length === 6")
    last = "#shift .pictures section:last-child"
    assert page.texts(f"{last} .level:last-child .cell") == ["7", "11", "NaN", "NaN"]
    assert page.texts(f"{last} .cell.wrong") == []


def test_a_barrier_in_a_branch_is_reported(open_page):
    page = open_page("trainer/barrier")
    settle(page, "trainer/barrier")
    branch, common = page.texts("#barrier .pictures section")
    assert "Waiting: 0–31. Never coming: 32–63." in branch
    assert "All threads" in common


def test_differing_bits_are_marked(open_page):
    page = open_page("trainer/rounding")
    settle(page, "trainer/rounding")
    page.choose("#rounding select", "own")
    page.fill("#rounding textarea", "1e8 1 -1e8 0.25")
    page.click("#rounding button[type=submit]")
    page.until("document.querySelector('#rounding dl').innerText.includes('1.25')")
    assert page.texts("#sums mark") != []


def test_what_the_lab_refuses_is_told(open_page):
    page = open_page("trainer/reduce")
    settle(page, "trainer/reduce")
    page.fill("#reduce input[type=number]", "4")
    page.click("#reduce button[type=submit]")
    page.until("document.querySelector('#reduce-picture .problem')")
    assert "8" in page.text("#reduce-picture .problem")
    assert set(refusals(page)) == {422}


def test_a_lab_that_is_off_is_told(browser, binary, tmp_path):
    daemon = Daemon(binary, tmp_path / "stderr", cuda="off", lab="off")
    page = browser.new_page()
    try:
        page.open(f"http://127.0.0.1:{daemon.port}/#/trainer/race")
        page.until("document.querySelector('#race .problem')")
        assert "switched off" in page.text("#race .problem")
        assert refusals(page) == [404] and page.complaints == []
    finally:
        page.close()
        daemon.stop()


# ---- Kernels ----


def test_the_ladder_is_measured_and_plotted(open_page, pictures):
    page = open_page("kernels")
    settle(page, "kernels")
    page.until("document.querySelectorAll('#ladder tbody tr').length > 5")
    page.choose("#kernels select:has(option[value='316'])", 316)
    page.click("#kernels button.main")
    page.until("document.querySelector('#measured')")
    kernels = page.run("document.querySelectorAll('#kernels input[type=checkbox]').length")
    assert page.run("document.querySelectorAll('#measured tbody tr').length") == 2 * kernels
    assert page.run("document.querySelectorAll('#plot .curve').length") == kernels
    page.click("#kernels input[value=gb_s]")
    assert "GB/s" in page.text("#plot")
    page.screenshot(pictures / "measured.png")


def test_a_measurement_can_be_stopped(open_page):
    page = open_page("kernels")
    settle(page, "kernels")
    page.click("#kernels button.main")
    page.until("document.querySelector('#plot .dot')")
    page.click("#kernels button:not(.main)")
    page.until("/Stopped/.test(document.querySelector('#kernels [role=status]').innerText)")
    page.until("!document.querySelector('#kernels button.main').disabled")


# ---- Status ----


def test_the_status_is_alive_and_rests_when_not_looked_at(open_page, daemon):
    page = open_page("status")
    settle(page, "status")
    assert "ready" in page.text("#status-out") and "cpu" in page.text("#devices")
    asked = (
        "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/status')).length"
    )
    page.until(f"{asked} >= 2")
    page.click("#tab-compute")
    page.has("#result")
    seen = page.run(asked)
    page.run("new Promise((resolve) => setTimeout(resolve, 2500))")  # longer than its period
    assert page.run(asked) == seen


def test_the_status_tells_latencies_and_the_serving_process(open_page):
    page = open_page("compute")
    settle(page, "compute")  # an answer, so that there are latencies
    page.click("#tab-status")
    page.has("#latency")
    assert "copy in" in page.text("#latency") and "total" in page.text("#latency")
    assert "µs" in page.text("#latency tbody tr:last-child td")
    assert "Processes lost\n0" in page.text("#status-out")
    assert "{" not in page.text("#status-out")  # nothing is shown as the JSON it came as


# ---- the frame ----


def test_the_address_names_the_view_and_the_language_is_remembered(open_page):
    page = open_page("trainer/shift")
    settle(page, "trainer/shift")
    page.click("#languages [lang=uk]")
    page.until("document.documentElement.lang === 'uk'")
    assert page.text("#tab-shift") == "Зсув"
    page.call("Page.reload")
    page.until("document.querySelector('#tab-shift')?.innerText === 'Зсув'")
    assert page.run("document.querySelector('#languages [lang=uk]').ariaPressed") == "true"
    page.click("#tab-status")
    page.until("location.hash === '#/status'")
    page.run("history.back()")
    page.has("#shift")


def test_everything_can_be_done_by_keyboard_alone(open_page):
    page = open_page("compute")
    page.has("#result")
    focused = "document.activeElement"
    page.press("Tab")
    assert page.run(f"{focused}.className") == "skip"
    for _ in range(4):
        page.press("Tab")
    assert page.run(f"{focused}.id") == "tab-compute"
    assert page.run(f"getComputedStyle({focused}).outlineStyle") == "solid"
    page.press("ArrowRight")
    page.has("#reduce")
    page.press("End")
    page.has("#devices")
    page.press("Home")
    page.has("#result")
    page.press("Tab")
    assert page.run(f"{focused}.id") == "operand-a"
    page.run(f"{focused}.select()")
    page.call("Input.insertText", text="2 3")
    page.press("Tab")
    page.press("Tab")
    assert page.run(f"{focused}.id") == "operand-b"
    page.run(f"{focused}.select()")
    page.call("Input.insertText", text="10 1")
    while page.run(f"{focused}.type") != "submit":
        page.press("Tab")
    page.press("Enter")
    page.until("document.querySelector('#result').innerText === '23'")
    page.click("#tab-trainer")
    page.has("#counts")
    while page.run(f"{focused}.type") != "range":
        page.press("Tab")
    page.press("ArrowRight")
    assert page.text("#reduce .player output").startswith("2 /")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_every_language_width_and_light(open_page, pictures, view):
    page = open_page(view)
    name = view.replace("/", "-")
    settle(page, view)
    for language in LANGUAGES:
        page.click(f"#languages [lang={language}]")
        page.until(f"document.documentElement.lang === '{language}'")
        for width in (320, 1280, 2560):
            page.resize(width, 900)
            assert audit(page, "overflow") == [], (language, width)
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), (language, width)
        assert audit(page, "keys") == [], language
        page.resize(1280, 900)
        page.screenshot(pictures / f"{name}-{language}.png")
    for scheme in ("light", "dark"):
        page.media(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
        assert audit(page, "contrast") == [], scheme
    page.screenshot(pictures / f"{name}-dark.png")
    page.media(forced_colors="active", prefers_reduced_motion="reduce")
    page.screenshot(pictures / f"{name}-forced.png")
    page.media(prefers_reduced_motion="reduce")
    page.resize(320, 900)
    page.screenshot(pictures / f"{name}-narrow.png")


@pytest.mark.parametrize("view", VIEWS)
def test_every_control_has_a_name(open_page, view):
    page = open_page(view)
    settle(page, view)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"].lower() in CONTROLS
    ]
    assert len(named) > 10
    assert [role for role, name in named if not name.strip()] == []


def test_pictures_do_not_depend_on_colour(open_page):
    page = open_page("trainer/reduce", forced_colors="active")
    settle(page, "trainer/reduce")
    step_to(page, "2 / 5")
    last = "document.querySelector('.level:last-child .cell{}')"
    edge = f"getComputedStyle({last}).borderTop.split(' ').slice(0, 2)"
    assert page.run(edge.format(".written")) == ["2px", "solid"]
    assert page.run(edge.format(".read:not(.written)")) == ["2px", "dashed"]
    dot = f"getComputedStyle({last.format('.active')}, '::after').width"
    assert float(page.run(dot).removesuffix("px")) > 3
