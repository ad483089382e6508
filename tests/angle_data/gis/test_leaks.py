"""Lines that tell the label of a pair, planted in a body: nothing telling is left of them."""

import re

import pytest

from angle_data.gis.build.clean import clean_text

PLANTED = """
war doppelt #47
Zusammengeführt mit #47
Marked as duplicate by the bot
number 55, please merge
see 47
#47 (87 %)
siehe 47
véase 47
ref. 4711
please see number 47
Similar issue: 4711
Merging into 47
Continued in 47
Kept open in 47
bug 4711 again
My earlier one was 47
Closed by bot: duplicate
Auto-closed as duplicate
Flagged as possible duplicate by triage
*** This bug has been marked as a duplicate of bug 4123 ***
Possible duplicates: #47 (92%), #48 (81%)
[duplicate]
This is not a dupe
Sorry, posted twice
Double post, ignore
Repost
This one is redundant
Wurde schon gemeldet
Bereits gemeldet in 47
Fermé comme doublon de #47
Cierro como duplicado de #47
Закрыт как дубль #47
Zgłoszenie zdublowane z #47
#47'nin kopyası
#47 の重複です
Linked to #47 as duplicate
Call me at +49 151 2345 6789
My phone: 0151/23456789
Reach me on (555) 123-4567
It fails from 203.0.113.77
"""
LINES = PLANTED.split("\n")[1:-1]
TELLING = re.compile(
    r"dup|dubl|doublon|double|repost|redundan|twice|gemeldet|重複|kopya|\d{2}|\[issue\]", re.IGNORECASE
)
ORDINARY = [
    "It fails in 47 cases.", "See step 5 of the log.", "Number 5 is missing.", "Issue 47 rows and wait.",
    "In 2021 it worked, and in 2022 too.", "Open port 443 first.", "The report was 12 pages long.",
    "This check is redundant here.", "Rows are posted twice.", "*** stack smashing detected ***",
    "f(555) 123", "(555) rows",
]  # fmt: skip


def test_there_are_forty_lines():
    assert len(LINES) == 40


@pytest.mark.parametrize("line", LINES)
def test_nothing_telling_is_left_of_a_planted_line(line):
    assert TELLING.search(line)
    cleaned = clean_text("Title", f"It crashes at start.\n\n{line}\n\n### Steps\nRun it. Wait.")
    start, end = "Title\n\nIt crashes at start.\n\n", "### Steps\nRun it. Wait."
    assert (cleaned.startswith(start), cleaned.endswith(end)) == (True, True)
    left = cleaned.removeprefix(start).removesuffix(end)
    assert not TELLING.search(left), left
    assert len(left.strip()) < len(line)


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_stay(line):
    assert (
        clean_text("Title", f"It crashes.\n\n{line}\n\nWait.") == f"Title\n\nIt crashes.\n\n{line}\n\nWait."
    )
