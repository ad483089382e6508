"""The markers on labelled comments, and what holds for every comment."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angle_data.gis.comments.reading import LONGEST, read_comment

ROOT = Path(__file__).resolve().parents[4]
FIXTURES = ROOT / "tests" / "fixtures" / "gis"
FURTHER = ROOT / "benchmarks" / "gis" / "comments-further.jsonl"
FILES = {name: FIXTURES / f"comments-{name}.jsonl" for name in ("dev", "heldout", "tuning")}
REPO, NUMBER = "lumen/editor", 9000


def score(rows):
    """Explicit (hits, found, labelled, wrong directions) over labelled comments."""
    count = Counter()
    for row in rows:
        labelled = [link for link in row["links"] if link["certainty"] == "explicit"]
        labels = {(link["repo"].casefold(), link["number"]): link["direction"] for link in labelled}
        links = read_comment(row["body"], row["repo"], row["number"], author=row["author"]).links
        found = {link.target: link.direction for link in links if link.certainty == "explicit"}
        both = labels.keys() & found.keys()
        wrong = sum(found[target] != labels[target] for target in both)
        count.update(hits=len(both), found=len(found), labelled=len(labels), wrong=wrong)
    return [count[name] for name in ("hits", "found", "labelled", "wrong")]


@pytest.mark.parametrize("path", [*FILES.values(), FURTHER], ids=lambda path: path.stem)
def test_explicit_markers_reach_the_bar(path):
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    hits, found, labelled, wrong = score(rows)
    assert hits / found >= 0.98
    assert hits / labelled >= 0.93
    assert wrong / hits <= 0.03
    for trap in ("quote", "mail", "code", "html", "template", "negation"):
        trapped = [row for row in rows if row.get("category") == f"trap_{trap}"]
        assert trapped or path not in (FILES["dev"], FILES["heldout"])
        hits, found, _, _ = score(trapped)
        assert hits == found


def test_a_list_of_possible_duplicates_states_nothing():
    def numbers(body, author):
        return [link.number for link in read_comment(body, REPO, NUMBER, author=author).links]

    listed = "Found 2 possible duplicates:\n- #5\n- #6\n\nClosing soon."
    assert numbers(listed, "finder[bot]") == []
    assert numbers("Duplicate of #5 (92%)\n#6 (81%)", "finder[bot]") == []
    assert numbers("Duplicate of #5 (92%)", "maria") == [5]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "Hi!\r\n\r\n**Closing as a duplicate of** [#5](https://github.com/lumen/editor/issues/5). Bye",
            "duplicate of** [#5](https://github.com/lumen/editor/issues/5)",
        ),
        ("Closing as a duplicate. Please follow #5 for updates.", "duplicate. Please follow #5"),
    ],
)
def test_the_span_covers_the_phrase_and_its_target(body, said):
    (link,) = read_comment(body, REPO, NUMBER).links
    assert body[slice(*link.span)] == said


WORDS = """
    duplicate dup of #5 #6 #9000 closing as in favor tracked same not ? . , : ( ) [x](https://github.com/a/b/issues/7)
    ` ``` > <!-- --> <details> - * | is this a/b#8 GH-9 重复 と 중복 [ ] ~~ " “ /dup On wrote:
"""
PIECES = st.sampled_from([*WORDS.split(), "\n", "\r", "\ue000", "\ue003"])


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map(" ".join))
def test_reading_never_raises_and_spans_lie_in_the_body(body):
    reading = read_comment(body, REPO, NUMBER)
    for link in (*reading.links, *reading.denials):
        start, end = link.span
        assert 0 <= start < end <= len(body)
        assert link.target != (REPO, NUMBER)


@pytest.mark.parametrize(
    "body", ["duplicate of " * 3000, "`a``b```c " * 8000, "#5 is the same as #6, dup of " * 1000]
)
def test_hostile_texts_end(body):
    """Takes seconds, not hours, if every pattern is linear (the time-out of the run is what fails)."""
    read_comment(body + "#5", REPO, NUMBER)


def test_what_no_comment_can_hold_is_not_read():
    tail = "Duplicate of #5"
    head = ("Fine. " * LONGEST)[len(tail) - LONGEST :]
    assert len(read_comment(head + tail, REPO, NUMBER).links) == 1
    assert read_comment("x" + head + tail, REPO, NUMBER).links == ()
