"""Pairs of --pairs, mined among texts, say: rows of a build if they are graded."""

import itertools
from collections import Counter

import pytest
from ensembles import card, report, split_rows, write_grades, write_polar_run
from labelling_runs import read_rows

from angle_data.ensembling.build import build_ensemble
from angle_data.ensembling.config import EnsembleConfig
from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.text import normalise, pair_key

THINGS = ("disk", "fan", "node", "link", "probe") * 6
TEXTS = [f"The {thing} of unit{i} is down." for i, thing in enumerate(THINGS)]


@pytest.fixture
def run(tmp_path):
    """A synonym and an antonym of each of thirty texts."""
    return write_polar_run(tmp_path / "run", [text[4:-9] for text in TEXTS])


def mine(folder, step=7):
    """Every text with the one so many places on, in a ring."""
    pairs = zip(TEXTS, TEXTS[step:] + TEXTS[:step], ["near", "random"] * 15, strict=True)
    return [{"text1": one, "text2": other, "kind": kind} for one, other, kind in pairs]


def grade(folder, rows, grades=(0.0, 3.5, 4.0)):
    graded = zip(rows, itertools.cycle(grades))
    known = ({"text1": row["text2"], "text2": row["text1"], "score": score} for row, score in graded)
    return write_grades(folder, [row | {"model": "x"} for row in known])


def build(run, pairs, scores, **options):
    file, out = run.parent / "pairs.jsonl", run.parent / "out"
    write_jsonl(file, pairs)
    runs = () if options.pop("alone", False) else (run,)
    return build_ensemble(EnsembleConfig(runs, out, pairs=(file,), scores=(scores,), **options))


def rows_of(run):
    return split_rows(run.parent / "out")


def test_graded_pairs_become_rows_and_others_are_dropped_with_a_reason(run, tmp_path, caplog):
    pairs = mine(tmp_path)
    scores = grade(tmp_path / "scores", pairs[:20])
    odd = [
        {"text1": pairs[0]["text2"].upper(), "text2": pairs[0]["text1"]},  # the first once more
        {"text1": TEXTS[0], "text2": f" {TEXTS[0]} "},
        {"text1": "", "text2": TEXTS[0]},
    ]
    summary = build(run, [*pairs, *odd], scores, ratios=(1.0,))
    assert summary.given == {"kept": 20, "blank": 1, "identical": 1, "repeated": 1, "ungraded": 10}
    assert (summary.candidates, summary.kept, summary.dropped) == (60, 60, {})
    rows = [row for row in rows_of(run)["train"] if row["supervision"] == "grades"]
    found = {(r["polarity"], r["label"], r["score"]) for r in rows}
    assert found == {("", 0, 0.0), ("", 0, 0.7), ("", 1, 0.8)}
    assert Counter(flag for r in rows for flag in r["flags"]) == {"near": 10, "random": 10}
    assert {r["source_id"] for r in rows if r["text1"] == TEXTS[3]} == {"t3"}
    rejected = Counter(row["reason"] for row in read_rows(run.parent / "out" / "rejected.jsonl"))
    assert rejected | {"kept": 20} == summary.given
    assert report(run.parent / "out")["given"] == summary.given
    assert report(run.parent / "out")["scores"]["unknown_pairs"] == 0
    unchecked, said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert unchecked.startswith("x graded given pairs and fewer than 20 candidates of either polarity: its")
    assert said.startswith("10 of 33 given pairs have no grade that is used and are left out: `angle-data ")
    accounts = "- 33 given pairs = 20 kept + 1 blank + 1 identical + 1 repeated + 10 ungraded\n"
    assert accounts in card(run.parent / "out")


def test_a_pair_that_is_kept_as_a_candidate_is_not_there_twice(run, tmp_path):
    pairs = [*mine(tmp_path), {"text1": "We lost the disk of unit0.", "text2": TEXTS[0]}]
    summary = build(run, pairs, grade(tmp_path / "scores", pairs, (4.5, 0.0)), ratios=(1.0,))
    assert summary.given == {"kept": 30, "repeated": 1}
    keys = [pair_key(r["text1"], r["text2"]) for r in rows_of(run)["train"]]
    assert len(keys) == len(set(keys))


def test_no_text_stands_in_two_splits(run, tmp_path, caplog):
    """Among the pairs are two candidates of one source, and one with a text that is no source."""
    pairs = [
        *mine(tmp_path),
        {"text1": "We lost the disk of unit0.", "text2": "All is well with the disk of unit0."},
        {"text1": "We lost the fan of unit1.", "text2": "Nobody knows."},
    ]
    summary = build(run, pairs, grade(tmp_path / "scores", pairs), ratios=(0.5, 0.5))
    across = summary.given["across_splits"]
    assert summary.given == {"kept": 32 - across, "across_splits": across}
    assert 5 < across < 25
    assert f"{across} of 32 given pairs join texts of two splits and are left out" in caplog.text
    where = {}
    for name, rows in rows_of(run).items():
        for row in rows:
            for text in (row["text1"], row["text2"]):
                where.setdefault(normalise(text), set()).add(name)
    assert {len(names) for names in where.values()} == {1}
    assert len(set.union(*where.values())) == 2


def test_random_pairs_are_none_of_the_given_ones_nor_alike_by_them(run, tmp_path):
    """All texts of one remainder mean the same, by a chain of grades; other given pairs are not graded."""
    chain = [{"text1": TEXTS[i], "text2": TEXTS[i + 3]} for i in range(27)]
    others = [{"text1": TEXTS[i], "text2": TEXTS[j]} for i in range(0, 30, 3) for j in range(1, 30, 3)]
    scores = grade(tmp_path / "scores", chain, (5.0,))
    build(run, [*chain, *others], scores, ratios=(1.0,), random_per_source=5)
    place = {text: i % 3 for i, text in enumerate(TEXTS)}
    drawn = (row for row in rows_of(run)["train"] if row["supervision"] == "random")
    kinds = {frozenset((place[row["text1"]], place[row["text2"]])) for row in drawn}
    assert kinds == {frozenset((0, 2)), frozenset((1, 2))}


def test_given_pairs_alone_make_a_data_set(run, tmp_path):
    pairs = mine(tmp_path)
    summary = build(run, pairs, grade(tmp_path / "scores", pairs), ratios=(1.0,), alone=True)
    assert summary.pairs == {"train": {"grades": 30, "random": 30}}
    assert (summary.candidates, summary.graded) == (0, {})  # the graders of given pairs are warned of


def test_the_same_bytes_in_any_order(run, tmp_path):
    pairs = mine(tmp_path)
    scores = grade(tmp_path / "scores", pairs)
    build(run, pairs, scores, ratios=(0.7, 0.3))
    once = rows_of(run)
    write_grades(scores, read_rows(scores / "scores.jsonl")[::-1])
    build(run, pairs[::-1], scores, ratios=(0.7, 0.3))
    assert rows_of(run) == once


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"pairs.jsonl holds no pairs; make some with `angle-data mine --out"),
        ([{"sentence1": "a", "sentence2": 3}], r"pairs.jsonl:1: field 'sentence2' must be a string, got int"),
        ([{"text": "a"}], r"pairs.jsonl:1: text1 and text2 must be strings; fields found: text"),
    ],
)
def test_bad_pairs_are_refused(run, tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        build(run, rows, grade(tmp_path / "scores", mine(tmp_path)))

    scores = grade(tmp_path / "scores", mine(tmp_path, 8))  # of other pairs
    with pytest.raises(InputError, match=r"^--scores grades none of the 60 candidate pairs.*drops\); grade"):
        build(run, mine(tmp_path), scores)
