"""Both pages in a real browser: graded with the keyboard, filtered, no text run, nothing too wide.

Needs Chromium, such as Debian's package `chromium`; CHROMIUM names another program.
"""

import csv
import html
import io
import json
import os
import re
import shutil
import subprocess

import pytest

from angle_data.look.grade import draw_pairs, write_grading
from angle_data.look.show import look, write_page

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium, so no page was opened: apt install chromium, or CHROMIUM=PROGRAM"
)


def told(page, script, directory, before=""):
    """Open a page, let a script work in it and return what it gives; the console must stay silent."""
    directory.mkdir(exist_ok=True)
    text = page.read_text().replace("<style>", f"<script>{before}</script><style>", 1)
    keep = "(found) => { document.body.dataset.found = JSON.stringify(found); }"
    work = f"(async () => {{ {script} }})().then({keep})"
    (directory / "page.html").write_text(text.replace("</html>", f"<script>{work}</script></html>"))
    done = subprocess.run(
        [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={directory / 'profile'}", "--window-size=500,800", "--virtual-time-budget=5000",
            "--dump-dom", (directory / "page.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    found = re.search(r'data-found="(.*?)"', done.stdout)
    assert found, done.stdout[-2000:]
    return json.loads(html.unescape(found[1]))


PRESS = """
const press = (keys) => keys.forEach((key) => document.dispatchEvent(new KeyboardEvent("keydown", { key })));
const blobs = [];
URL.createObjectURL = (blob) => { blobs.push(blob); return "#"; };
const files = async () => {
  for (const split of ["dev", "test"]) document.getElementById(split).click();
  return Promise.all(blobs.map((blob) => blob.text()));
};
const state = () => document.getElementById("state").textContent;
"""


@pytest.fixture
def grading(pairs, nasty, tmp_path):
    drawn = tuple((f"{nasty} {one}", other, split) for one, other, split in draw_pairs(pairs, n=6)[0])
    return drawn, write_grading(tmp_path / "my.csv", drawn)


def test_pairs_are_graded_with_the_keyboard_and_come_back_as_csv(grading, tmp_path):
    drawn, page = grading
    keys = ["4", ".", "3", "ArrowRight", ".", "5", ".", "2", "ArrowLeft", "1", "0", "5", "n", "0"]
    script = f"{PRESS} press({keys}); return [state(), await files(), document.title];"
    state, files, title = told(page, script, tmp_path / "one")
    # 4; 3.5; skipped; 5 is no half more, then 2; back and 1; 0; 5; on to the skipped one: 0.
    grades = ["4", "3.5", "0", "1", "0", "5"]
    assert state == "pair 4 of 6, graded 1; 6 graded, all done: download both files"
    assert title == "my: 6 pairs to grade"
    for split, text in zip(("dev", "test"), files, strict=True):
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert [list(row.values()) for row in rows] == [
            [one, other, grade, "0-5"]
            for (one, other, its), grade in zip(drawn, grades, strict=True)
            if its == split
        ]


def test_answers_are_kept_and_a_browser_without_memory_says_so(grading, tmp_path):
    _, page = grading
    data = re.search(r'<script type="application/json">(.*?)</script>', page.read_text(), re.S)[1]
    key = json.loads(data)["key"]
    before = f"""localStorage.setItem("angle-data grade {key}", '{{"0":2.5,"1":4}}');"""
    script = f'{PRESS} press(["3"]); return [state(), localStorage.getItem("angle-data grade {key}")];'
    state, stored = told(page, script, tmp_path / "kept", before)
    assert state == "pair 4 of 6; 3 graded, 3 to go"
    assert json.loads(stored) == {"0": 2.5, "1": 4, "2": 3}
    before = 'Object.defineProperty(window, "localStorage", { get() { throw new Error("no"); } });'
    script = f'{PRESS} press(["3"]); return [state(), document.getElementById("kept").textContent];'
    state, said = told(page, script, tmp_path / "lost", before)
    assert state == "pair 2 of 6; 1 graded, 5 to go"
    assert said.startswith("This browser keeps no answers")


WIDTH = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


def test_the_page_of_show_filters_by_kind_reason_and_text(run, nasty, tmp_path):
    page = tmp_path / "look.html"
    write_page(page, "show", look(run, n=100))
    script = f"""
    const shown = () => document.querySelectorAll("main b").length;
    const found = [shown()];
    const choose = (name, value) => {{
      const field = document.querySelector(`[aria-label="${{name}}"]`);
      field.value = value;
      field.dispatchEvent(new Event("input", {{ bubbles: true }}));
      found.push(shown());
    }};
    choose("kind", "rejected"); choose("reason", "echo"); choose("kind", ""); choose("reason", "");
    choose("search texts", "SOURCE TEXT 1"); choose("group", "antonym");
    const said = document.querySelector("p").textContent;
    choose("search texts", "עברית");
    const texts = [...document.querySelectorAll("main .text")].map((box) => box.textContent);
    return [found, said, document.title, texts, {WIDTH}];
    """
    found, said, title, texts, fits = told(page, script, tmp_path / "show")
    assert found == [28, 4, 2, 2, 28, 4, 2, 1]  # "source text 1" and "source text 10"
    assert said == "2 of a sample of 28, drawn from 28"
    assert title == f"{run}: run of llm-label (unfinished)"  # what a text holds did not run
    assert texts == [nasty, "antonym of 11"]
    assert fits


def test_both_pages_fit_a_narrow_window(grading, pairs, tmp_path):
    _, page = grading
    assert told(page, f"return {WIDTH};", tmp_path / "grade")
    shown = tmp_path / "pairs.html"
    write_page(shown, "show", look(pairs, n=100))
    assert told(shown, f"return {WIDTH};", tmp_path / "pairs-page")
