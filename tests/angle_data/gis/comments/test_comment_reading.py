"""The markers on labelled comments and on the cases that single rules are there for."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angle_data.gis.comments.reading import LONGEST, read_comment
from angle_data.gis.comments.vocabulary import KINDS

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "gis"
REPO, NUMBER = "lumen/editor", 9000


def links(body, **options):
    """What a comment on #9000 states: `>5` it is a duplicate of #5, `<5` the reverse, `?` tentative."""
    found = read_comment(body, REPO, NUMBER, **options).links
    return [
        ("?" if link.certainty == "tentative" else "")
        + (">" if link.direction == "this_is_dup_of" else "<")
        + (str(link.number) if link.repo == REPO else f"{link.repo}#{link.number}")
        for link in found
    ]


def comments(name):
    return [
        json.loads(line) for line in (FIXTURES / f"comments-{name}.jsonl").read_text("utf-8").splitlines()
    ]


def score(rows):
    """Explicit (hits, false ones, misses, right directions) over labelled comments."""
    hits = false = missed = right = 0
    for row in rows:
        labels = {
            (x["repo"].casefold(), x["number"]): x for x in row["links"] if x["certainty"] == "explicit"
        }
        found = {
            link.target: link
            for link in read_comment(row["body"], row["repo"], row["number"], author=row["author"]).links
            if link.certainty == "explicit"
        }
        hits += len(labels.keys() & found.keys())
        right += sum(found[t].direction == labels[t]["direction"] for t in labels.keys() & found.keys())
        false += len(found.keys() - labels.keys())
        missed += len(labels.keys() - found.keys())
    return hits, false, missed, right


@pytest.mark.parametrize("half", ["dev", "heldout", "tuning"])
def test_explicit_markers_reach_the_bar(half):
    hits, false, missed, right = score(comments(half))
    assert hits / (hits + false) >= 0.98
    assert hits / (hits + missed) >= 0.93
    assert right / hits >= 0.97


@pytest.mark.parametrize("half", ["dev", "heldout"])
@pytest.mark.parametrize("trap", ["quote", "mail", "code", "html", "template", "negation"])
def test_no_explicit_link_in_what_others_said_or_denied(half, trap):
    rows = [row for row in comments(half) if row["category"] == f"trap_{trap}"]
    assert rows
    assert score(rows)[1] == 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Duplicate of #5", [">5"]),
        ("duplciate of #5", [">5"]),
        ("Duplicate of #1, #2 and #3", [">1", ">2", ">3"]),
        ("Duplicate of #1, #2 is related", [">1"]),
        ("Duplicate of #5, which is a duplicate of #6", [">5"]),
        ("Closing as a duplicate. Please follow #5.", [">5"]),
        ("This is tracked by #5. Closing as a duplicate.", [">5"]),
        ("Closing as a duplicate. The fix is in #5.", []),
        ("Duplicate of:\n- #5\n- #6", [">5", ">6"]),
        ("/dup 5", [">5"]),
        ("Duplicate of Acme/Engine#5", [">Acme/Engine#5"]),
        ("#5 is a duplicate of this", ["<5"]),
        ("#5 is a duplicate of #9000", ["<5"]),
        ("#9000 is a duplicate of #5", [">5"]),
        ("#5 is a duplicate of #6", []),
        ("Closing #5 in favor of #6", []),
        ("#5 and this one are duplicates of #6", [">6"]),
        ("Duplicate of #9000", []),
        ("This is not a duplicate of #5 but of #6", [">6"]),
        ("Not a bug, but a duplicate of #5", [">5"]),
        ("Isn't this a duplicate of #5?", ["?>5"]),
        ("Duplicate of #5, did you search?", [">5"]),
        ("Looks like a duplicate of #5", ["?>5"]),
        ("Looks like a duplicate of #5, closing", [">5"]),
        ("Possible duplicate of #5, closing", ["?>5"]),
        ("Looks like a duplicate of #5, should we close?", ["?>5"]),
        ("If this is a duplicate of #5, please close it", []),
        ("This creates a duplicate of #5 in the list", []),
        ("Tracked in #5", [">5"]),
        ("The docs part is tracked in #5", []),
        ("The same as #5", [">5"]),
        ("We can do the same as in the fix of #5", []),
        ("Closing in favor of #5", [">5"]),
        ("I am in favor of #5", []),
        ("This is #5's fault", []),
        ("Duplicate of #5\n\nEDIT: sorry, not a duplicate after all", []),
        ("See #5", []),
        ("Closing, see #5", []),
        # Mistakes that are told
        ("This was marked as a duplicate of #12 by mistake, reopening.", []),
        ("This was closed as a duplicate of #12, which was a mistake.", []),
        ("This is a duplicate of #2, opened by mistake.", [">2"]),
        ("I filed a duplicate of #3 by mistake.", [">3"]),
        # Dissent
        ("I don't understand how this is a duplicate of #68", []),
        ("I don't understand. This is a duplicate of #68.", [">68"]),
        # What would be
        ("This would be a duplicate of #105 if it were on v2.", []),
        ("This would be a duplicate of #105 if I understand it right.", ["?>105"]),
        ("This would be a duplicate of #7.", [">7"]),
        # Advice and forms
        ("If this is a duplicate of #12 please close it.", []),
        ("If this is a duplicate of #12, feel free to close it.", ["?>12"]),
        ("Please check whether it is a duplicate of #22 before posting.", []),
        ("Please check whether it is a duplicate of #22.", ["?>22"]),
        ("The issue template asks: Is this a duplicate of #101?", []),
        ("Is this a duplicate of #101?", ["?>101"]),
        # Emphasis and lists
        ("_Duplicate of #63_", [">63"]),
        ("dup of __#64__", [">64"]),
        ("duplicate of #63_beta", []),
        ("dup #35 #36", [">35", ">36"]),
        ("dup #1 #2 is unrelated", [">1"]),
        # Whose duplicate is not said
        ("Also see #43 which is a dup.", ["?<43"]),
        # Causes
        ("same root cause as #13, I'm going to close this and track it over there", [">13"]),
        ("This has the same root cause as #13.", ["?>13"]),
        # Half a statement
        ("+1, same here as #110", ["?>110"]),
        ("duplicate of #71, but for the Windows build", ["?>71"]),
        ("duplicate of #71, but for now I leave it open", [">71"]),
        # Second thoughts in the same comment
        ("Duplicate of #65\n\nEdit: nope, it's different, sorry.", []),
        ("Duplicate of #65\n\nEdit: no problem, it is easy to find.", [">65"]),
        ("Edit: nope, it's different, sorry.\n\nDuplicate of #65", [">65"]),
    ],
)
def test_what_a_comment_states(body, expected):
    assert links(body) == expected


def test_a_list_of_possible_duplicates_states_nothing():
    body = "This is a duplicate of these:\n- #5\n- #6"
    assert links(body) == [">5", ">6"]
    listed = "Found 2 possible duplicates:\n- #5\n- #6\n\nClosing soon."
    assert links(listed, author="finder[bot]") == []
    assert links("Duplicate of #5 (92%)\n#6 (81%)", author="finder[bot]") == []
    assert links("Duplicate of #5 (92%)", author="maria") == [">5"]


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


@pytest.mark.parametrize(
    ("body", "kind", "family"),
    [
        ("Duplicate of PR #5", "duplicate:pull", "duplicate"),
        (f"Superseded by https://github.com/{REPO}/pull/5", "superseded:pull", "superseded"),
        ("Tracked in #5", "tracked", "tracked"),
    ],
)
def test_a_target_that_is_a_pull_request_is_flagged_in_the_kind(body, kind, family):
    (link,) = read_comment(body, REPO, NUMBER).links
    assert (link.kind, link.family) == (kind, family)
    assert family in KINDS


@pytest.mark.parametrize(
    ("body", "denied"),
    [
        ("This is not a duplicate of #5.", [5]),
        ("This was marked as a duplicate of #12 by mistake.", [12]),
        ("Let me know if this is not a duplicate of #5.", []),
        ("Isn't this a duplicate of #5?", []),
    ],
)
def test_denials_name_what_is_denied_and_conditions_or_questions_deny_nothing(body, denied):
    assert [denial.number for denial in read_comment(body, REPO, NUMBER).denials] == denied


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
