"""No text that strangers write can hold a crawl or a build up.

Many kinds of repetition go through every public function that matches. A pattern that backtracks without
bounds (exponential, cubic) would not end at this length, so the process has a limit, far above what all take
together. No times are compared, and what is merely quadratic is not found.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 120
LENGTH = 4_000
UNITS = [
    *" \t\n!.?…,;:#*-_|>[]()`~\"'@/\\+=&<0aI",
    "I ", "| I ", "i have ", "so and i ", "thank you ", "is the same as ", "already been ", "dup of ",
    "#5, ", "see #5. ", " \n", "- \n", "> ", "a@b.", "x=", "/a",
    "https://a.b/", "<a href=", "<!--", "[a](", "`` ", "~~a", "<pre>", "重复 ",
]  # fmt: skip
AROUND = [("a", "z"), ("Duplicate of #5. ", ""), ("duplicates", "\nz #5")]
READ = """
import json, sys
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
for text in json.load(sys.stdin):
    FUNCTIONS[sys.argv[1]](text)
    print(end=".", flush=True)
"""


NAMES = ("read_comment", "clean_text", "scrub", "confirmed_guesses", "bare_reference", "is_duplicate_label")


@pytest.mark.parametrize("function", [*NAMES, "line_key"])
def test_reading_ends_whatever_a_text_repeats(function):
    texts = [one + (unit * LENGTH)[:LENGTH] + end for one, end in AROUND for unit in dict.fromkeys(UNITS)]
    root = Path(__file__).parents[3]
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ, function], input=json.dumps(texts), cwd=root, text=True,
            capture_output=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        at = texts[len(error.stdout or b"")]
        pytest.fail(f"{function} does not end: {at[:40]!r} … {at[-10:]!r}")
    assert done.returncode == 0, done.stderr
