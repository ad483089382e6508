"""The reports in a real browser: no message on the console, nothing too wide, and on paper all of it.

Needs Chromium, such as Debian's package `chromium`; CHROMIUM names another program.
"""

import os
import re
import shutil
import subprocess
from html import escape

import pytest
from report_examples import made_report, made_suite, views

from angle_train.evaluation.compare import Evaluation
from angle_train.report.eval_page import write_eval_page
from angle_train.report.page import write_fit_page

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason="no Chromium, so no report page was opened: apt install chromium, or CHROMIUM=PROGRAM",
)

# The page in a frame of the wanted width: headless windows are never narrower than 500 pixels.
FRAME = """<!DOCTYPE html><title>frame</title>
<iframe id="page" style="border:0;width:{width}px;height:800px" srcdoc="{page}"></iframe><p id="found"></p>
<script>
document.getElementById("page").onload = (event) => {{
  const root = event.target.contentDocument.documentElement;
  root.querySelectorAll("details").forEach((part) => {{ part.open = {opened}; }});
  const ink = getComputedStyle(root.querySelector("body")).color;
  const drawn = [...root.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect().width);
  document.getElementById("found").textContent =
    `width ${{root.scrollWidth}} of ${{root.clientWidth}}, ink ${{ink}}, ` +
    `svg ${{Math.floor(Math.min(...drawn))}} to ${{Math.ceil(Math.max(...drawn))}}`;
  {also}
}};
</script>"""


def opened(page, directory, width, also="", dark=False, folded=False):
    """What the browser found and what it said on its console."""
    frame = directory / f"frame-{width}.html"
    unfold = "false" if folded else "true"
    frame.write_text(FRAME.format(width=width, page=escape(page), also=also, opened=unfold))
    done = subprocess.run(
        [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={directory / 'profile'}", f"--window-size={max(width, 500)},800",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=5000",
            "--dump-dom", frame.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = re.search(r'<p id="found">(.*?)</p>', done.stdout)
    assert found, done.stderr
    return found[1], [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The three kinds of page, by name, with long and awkward names and texts."""
    directory = tmp_path_factory.mktemp("pages")
    write_fit_page(directory / "fit", made_report(), views())
    found = Evaluation(made_report().results, views=views())
    write_eval_page(directory / "eval", found, "angle-train eval --model " + "x" * 300)
    write_eval_page(directory / "suite", made_suite(), "angle-train eval --task sts")
    return {path.name: path.read_text() for path in directory.iterdir()}


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("kind", ["fit", "eval", "suite"])
def test_page_opens_without_messages_and_without_scrolling_sideways(pages, kind, width, tmp_path):
    found, console = opened(pages[kind], tmp_path, width)
    inner, outer = map(int, re.search(r"width (\d+) of (\d+)", found).groups())
    assert console == []
    assert inner <= outer
    least, most = map(int, re.search(r"svg (\d+) to (\d+)", found).groups())
    assert 280 <= least <= most <= 420  # drawn at the size their letters are made for


def test_colours_follow_the_readers_theme(pages, tmp_path):
    (tmp_path / "light").mkdir()
    (tmp_path / "dark").mkdir()
    light, _ = opened(pages["fit"], tmp_path / "light", 1280)
    dark, _ = opened(pages["fit"], tmp_path / "dark", 1280, dark=True)
    assert "ink rgb(27, 36, 48)" in light
    assert "ink rgb(230, 234, 238)" in dark


def test_paper_shows_what_is_folded_away(pages, tmp_path):
    assert "@media print {" in pages["fit"]
    folds = pages["fit"].count("<details")
    assert folds >= 3
    count = """document.getElementById("found").textContent =
        [...root.querySelectorAll("details > :last-child")].filter((p) => p.checkVisibility()).length;"""
    for media, shown in (("print", 0), ("all", folds)):  # a screen that follows the rules for paper
        (tmp_path / media).mkdir()
        page = pages["fit"].replace("@media print {", f"@media {media} {{")
        found, _ = opened(page, tmp_path / media, 1280, also=count, folded=True)
        assert int(found) == shown
