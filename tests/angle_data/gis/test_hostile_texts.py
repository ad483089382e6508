"""No text that strangers write can hold a crawl or a build up.

Many kinds of repetition go through every public function that matches, at n and a quarter of it. Work that
grows as the square grows sixteenfold where linear work grows fourfold; it is measured in the processor time
of the process itself. A pattern that backtracks without bounds would not end at all, so the process has a
limit, far above what all take together.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 300
LENGTH = 8_000
UNITS = [
    *" \t\n!.?…,;:#*-_|>[]()`~\"'@/\\+=&<0aI",
    "I ", "| I ", "i have ", "so and i ", "thank you ", "is the same as ", "already been ", "dup of ",
    "#5, ", "see #5. ", " \n", "- \n", "> ", "a@b.", "x=", "/a", "this #5 ",
    "close #5? it ", "- #5 x. ", "`a` ", "not ", "#9000, ", "+1 ", "1.2.", "(1) ",
    "https://a.b/", "<a href=", "<!--", "[a](", "`` ", "~~a", "<pre>", "重复 ",
]  # fmt: skip
AROUND = [("a", "z"), ("Duplicate of #5. ", ""), ("duplicates", "\nz #5")]
READ = """
import json, sys, time
from angle_data.gis.build.clean import clean_text
from angle_data.gis.build.facts import bare_reference, confirmed_guesses, is_duplicate_label
from angle_data.gis.build.forms import line_key
from angle_data.gis.build.scrub import scrub
from angle_data.gis.comments.reading import read_comment, read_thread
from angle_data.gis.crawl.rows import Comment
def guess(text):
    remarks = [("ann", "NONE", "Maybe a duplicate of #5?"), ("ben", "OWNER", "yes " + text)]
    confirmed_guesses(read_thread(remarks, "o/r", 9), remarks, "cem")
def bare(text):
    comment = Comment(1, 1, 9, "ann", "OWNER", text, "2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "u")
    bare_reference([comment], "o/r", 9, frozenset({"github.com"}))
FUNCTIONS = {
    "read_comment": lambda text: read_comment(text, "o/r", 9),
    "clean_text": lambda text: clean_text(text[:200], text),
    "scrub": scrub, "confirmed_guesses": guess, "bare_reference": bare,
    "is_duplicate_label": is_duplicate_label, "line_key": line_key,
}
def work(text):
    began = time.process_time()
    FUNCTIONS[sys.argv[1]](text)
    return time.process_time() - began
for start, unit, end, length in json.load(sys.stdin):
    print(end=".", flush=True)
    whole = start + (unit * length)[:length] + end
    quarter = start + (unit * length)[:length // 4] + end
    # Less than that says nothing; a busy machine may slow one reading down, hardly three.
    if work(whole) > 0.02 and all(work(whole) > 9 * work(quarter) for _ in range(3)):
        sys.exit(f"{start!r}, {unit!r} again and again, {end!r}")
"""


NAMES = ("read_comment", "clean_text", "scrub", "confirmed_guesses", "bare_reference", "is_duplicate_label")


@pytest.mark.parametrize("function", [*NAMES, "line_key"])
def test_reading_is_linear_whatever_a_text_repeats(function):
    texts = [(one, unit, end, LENGTH) for one, end in AROUND for unit in dict.fromkeys(UNITS)]
    root = Path(__file__).parents[3]
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ, function], input=json.dumps(texts), cwd=root, text=True,
            capture_output=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"{function} does not end: {texts[len(error.stdout or b'') - 1]}")
    assert done.returncode == 0, f"{function} is not linear: {done.stderr}"
