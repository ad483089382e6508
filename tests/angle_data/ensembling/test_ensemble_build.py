import json
import re
from collections import Counter
from pathlib import Path

import pytest
from datasets import load_dataset
from ensembles import card, report, split_rows, write_grades, write_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from labelling_runs import read_rows
from programs import run_here

from angle_data.cli import main
from angle_data.ensembling.build import build_ensemble
from angle_data.ensembling.config import EnsembleConfig
from angle_data.errors import InputError
from angle_data.locking import LOCK_NAME
from angle_data.text import normalise

SUBJECTS = re.findall(r"\w+", "disk queue node cache proxy index lock shard quota token route probe")


def row(text, polarity, candidate, model, source_id="t1"):
    names = ("source_id", "source", "polarity", "text", "model", "key")
    values = (source_id, text, polarity, candidate, model, f"{model}:{polarity}:{text}")
    return dict(zip(names, values, strict=True))


def rows_of(model):
    """Two synonyms and an antonym for each of twelve texts; the second synonym and the antonym are shared."""
    rows = []
    for i, subject in enumerate(SUBJECTS):
        text = f"Our {subject} crashed on host{i} before window{i}."
        for polarity, other in (
            ("synonym", f"Before window{i} {model} saw the {subject} of host{i} crash."),
            ("synonym", f"host{i}: {subject} crash, ahead of window{i}"),
            ("antonym", f"Our {subject} recovered on host{i} before window{i}."),
        ):
            rows.append(row(text, polarity, other, model, f"t{i}"))
    return rows


@pytest.fixture
def runs(tmp_path):
    settings = {"size": 2, "sampling": {"seed": None}}
    return tuple(
        write_run(tmp_path / "runs" / name, rows_of(name), settings | {"checkpoint": f"org/{name}"})
        for name in ("alpha", "beta")
    )


def tree(out):
    files = (path for path in sorted(out.rglob("*")) if path.is_file() and path.name != LOCK_NAME)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def test_build_writes_a_data_set_that_load_dataset_opens(runs, tmp_path):
    out = tmp_path / "out"
    summary = build_ensemble(EnsembleConfig(runs, out, labels="ordinal", ratios=(0.5, 0.5), seed=1))
    splits = load_dataset(str(out / "dataset"), cache_dir=str(tmp_path / "cache"))
    assert list(splits) == ["train", "validation"]
    rows = [*splits["train"], *splits["validation"]]
    # Per text: one synonym of each annotator, one shared synonym, one shared antonym, one random pair.
    assert Counter(r["polarity"] for r in rows) == {"synonym": 36, "antonym": 12, "random": 12}
    found = {(r["polarity"], r["label"], r["score"]) for r in rows}
    assert found == {("synonym", 1, 1.0), ("antonym", 0, 0.5), ("random", 0, 0.0)}
    shared = next(r for r in rows if r["text2"] == "Our disk recovered on host0 before window0.")
    texts = {"text1": "Our disk crashed on host0 before window0.", "text2": shared["text2"]}
    # Both annotators: (36 + 4) / (36 + 5) = 0.9756, plus 0.1 for the second, clipped.
    numbers = {"label": 0, "score": 0.5, "weight": 1.0}
    origin = {"polarity": "antonym", "source_id": "t0", "models": ["alpha", "beta"]}
    assert shared == {**texts, **numbers, **origin, "flags": ["near_copy"], "supervision": "polarity"}
    assert summary.candidates == 72
    # alpha comes first and stands for the shared pairs, which beta supports all the same.
    assert summary.annotators == {
        "alpha": {"candidates": 36, "kept": 36, "supports": 36, "dropped": {}},
        "beta": {"candidates": 36, "kept": 12, "supports": 36, "dropped": {"duplicate": 24}},
    }
    assert (summary.kept, summary.dropped) == (48, {"duplicate": 24})
    assert summary.pairs == {name: Counter(r["polarity"] for r in split) for name, split in splits.items()}


@pytest.mark.parametrize("strategy", ["concat", "vote", "principled"])
def test_no_random_pair_joins_sources_that_share_a_synonym(tmp_path, strategy):
    """Sources "unit I …" and "rack I …" share one; a cap may take pairs away, not what they say."""
    rows = []
    for i, word in enumerate(SUBJECTS[:6]):
        for text, own in ((f"unit {i} crashed overnight", "x"), (f"rack {i} failed at nightfall", "y")):
            rows += [
                row(text, "synonym", f"in the dark hours host {i} with its {word} went down", "m"),
                row(text, "synonym", f"before dawn we lost {word} {i}{own} for good", "m"),
                row(text, "antonym", f"the {word} of {i}{own} ran on without a hitch", "m"),
            ]
    run, out = write_run(tmp_path / "run", rows), tmp_path / "out"
    options = {"random_per_source": 4, "ratios": (1.0,), "max_per_source": 1}
    build_ensemble(EnsembleConfig((run,), out, strategy, **options))
    pairs = [r for r in split_rows(out)["train"] if r["polarity"] == "random"]
    assert len(pairs) > 20
    assert not [p for p in pairs if p["text1"].split()[1] == p["text2"].split()[1]]


def test_build_accounts_for_every_candidate(runs, tmp_path):
    source = "Our disk crashed on host0 before window0."
    odd = (source.lower(), source.replace("crashed", "recovered"))
    rows = [row(source, "synonym", text, "gamma", "t0") for text in odd]
    gamma, out = write_run(tmp_path / "runs" / "gamma", rows), tmp_path / "out"
    build_ensemble(EnsembleConfig((*runs, gamma), out, max_per_source=2))
    found, rejected = report(out), read_rows(out / "rejected.jsonl")
    assert found["dropped"] == {"capped": 12, "conflict": 1, "duplicate": 24, "identical": 1}
    assert found["candidates"] == 74 == found["kept"] + len(rejected)
    assert Counter(r["reason"] for r in rejected) == found["dropped"]
    assert found["reasons"].keys() == found["dropped"].keys()
    dropped = {"conflict": 1, "identical": 1}
    assert found["annotators"]["gamma"] == {"candidates": 2, "kept": 0, "supports": 0, "dropped": dropped}
    for counts in found["annotators"].values():
        assert counts["candidates"] == counts["kept"] + sum(counts["dropped"].values())
    known = {"annotator": "alpha", "candidates": 36, "checkpoint": "org/alpha", "size": 2}
    assert found["runs"][0] | {"sha256": ""} == known | {"sampling": {"seed": None}, "sha256": ""}


def test_build_is_byte_identical_in_any_order(runs, tmp_path):
    options = {"labels": "ordinal", "max_per_source": 2, "ratios": (0.6, 0.2, 0.2), "seed": 5}
    build_ensemble(EnsembleConfig(runs, tmp_path / "one", **options))
    for run in runs:
        lines = (run / "candidates.jsonl").read_text().splitlines(keepends=True)
        (run / "candidates.jsonl").write_text("".join(reversed(lines)))
    build_ensemble(EnsembleConfig(runs[::-1], tmp_path / "two", **options))
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    data = [f"dataset/data/{name}-00000-of-00001.parquet" for name in ("test", "train", "validation")]
    assert sorted(one) == ["dataset/README.md", *data, "rejected.jsonl", "report.json"]
    assert one == two
    build_ensemble(EnsembleConfig(runs, tmp_path / "two", **(options | {"seed": 6})))  # in place of the old
    assert one[data[1]] != tree(tmp_path / "two")[data[1]]


TEXTS = ("Disk full.", "disk full", "Queue empty.", "Node lost.", "No space.", "Disk is full now.", "...")
TEXT = st.sampled_from(TEXTS)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(TEXT, st.sampled_from(["synonym", "antonym"]), TEXT), min_size=1, max_size=12),
    strategy=st.sampled_from(["concat", "principled", "vote"]),
)
def test_build_of_anything_accounts_and_never_leaks(tmp_path_factory, rows, strategy):
    folder = tmp_path_factory.mktemp("any")
    run = write_run(folder / "run", [row(text, polarity, other, "alpha") for text, polarity, other in rows])
    config = EnsembleConfig((run,), folder / "out", strategy, random_per_source=2, ratios=(0.5, 0.5))
    try:
        summary = build_ensemble(config)
    except InputError:  # nothing is left, or nothing fell into train
        assert not config.out.exists()
        return
    assert summary.candidates == len(rows) == summary.kept + sum(summary.dropped.values())
    where = {}
    for name, split in split_rows(folder / "out").items():
        for r in split:
            where.setdefault(normalise(r["text1"]), set()).add(name)
            where.setdefault(normalise(r["text2"]), set()).add(name)
    assert {len(names) for names in where.values()} == {1}


def test_build_leaves_out_an_empty_split_and_says_so(runs, tmp_path, caplog):
    summary = build_ensemble(EnsembleConfig(runs, tmp_path / "out", ratios=(0.9999, 0.0001)))
    assert list(summary.pairs) == ["train"]
    assert "no text fell into validation (12 texts, share 0.0001): it is left out" in caplog.text


def test_build_joins_shards_of_one_annotator(tmp_path):
    rows = rows_of("alpha")
    shards = tuple(write_run(tmp_path / name, part) for name, part in (("s0", rows[:18]), ("s1", rows[18:])))
    whole = write_run(tmp_path / "whole", rows)
    assert build_ensemble(EnsembleConfig(shards, tmp_path / "a")).annotators["alpha"]["candidates"] == 36
    once = build_ensemble(EnsembleConfig((whole,), tmp_path / "b"))
    name = "dataset/data/train-00000-of-00001.parquet"
    assert tree(tmp_path / "a")[name] == tree(tmp_path / "b")[name]
    # What a copy of a run holds is there twice: nothing new, and no second supporter.
    twice = build_ensemble(EnsembleConfig((whole, *shards), tmp_path / "c"))
    assert (twice.pairs, twice.dropped) == (once.pairs, {"duplicate": 36})


GOOD = json.dumps(row("Disk full.", "synonym", "No space left.", "alpha")) + "\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"candidates.jsonl holds no candidates; see rejected.jsonl"),
        ("\n \n", r"candidates.jsonl holds no candidates; see rejected.jsonl"),
        (GOOD + "{broken\n", r"candidates.jsonl:2: not valid JSON.* again writes the file anew"),
        (GOOD.replace('"t1"', "1"), r"candidates.jsonl:1: source_id: Input should be a valid string"),
        (GOOD + GOOD.replace("alpha", "beta"), r"candidates.jsonl mixes the annotators alpha, beta"),
        (GOOD.replace("No space left.", "disk full"), r"none of 1 candidates is left \(identical 1\)"),
    ],
)
def test_build_refuses_bad_candidates(tmp_path, content, message):
    run = tmp_path / "run"
    run.mkdir()
    (run / "candidates.jsonl").write_text(content)
    with pytest.raises(InputError, match=message):
        build_ensemble(EnsembleConfig((run,), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_build_refuses_bad_runs(runs, tmp_path):
    out = tmp_path / "out"
    broken = write_run(tmp_path / "broken", rows_of("beta"))
    (broken / "run.json").write_text("{")
    graded = write_scores(tmp_path / "graded", [])
    for chosen, message in (
        ((), "no run directory given"),
        ((tmp_path / "nowhere",), r"nowhere holds no candidates.jsonl; give the folder of .* to finish it"),
        ((runs[0], runs[0]), "alpha is given twice; name each once"),
        ((broken,), "run.json: not valid JSON"),
        ((graded,), r"graded holds no candidates.jsonl; give the folder of an `angle-data llm-label`"),
        ((runs[0] / "candidates.jsonl",), r"candidates.jsonl holds no candidates.jsonl; give the folder"),
    ):
        with pytest.raises(InputError, match=message):
            build_ensemble(EnsembleConfig(chosen, out))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "best"}, "unknown labels 'best'; choose one of binary, graded, ordinal"),
        ({"pairs": (Path("p"),)}, "--pairs needs grades: make some with `angle-data llm-score --pairs FILE"),
        ({"purpose": "shopping"}, "unknown purpose 'shopping'; choose one of opposites, topics, search"),
        ({"labels": "binary", "purpose": "topics"}, "--purpose topics is for --labels ordinal or graded"),
        ({"antonym_score": 1.5}, "--antonym-score must be between 0 and 1, got 1.5"),
        ({"labels": "binary", "antonym_score": 0.2}, "--antonym-score is for --labels ordinal or graded"),
        ({"random_per_source": -1}, "--random-per-source must be at least 0, got -1"),
        ({"max_per_source": 0}, "--max-per-source must be at least 1, got 0"),
        ({"ratios": (0.5, 0.4)}, "--ratios 0.5,0.4: give the shares of train"),
        ({"labels": "graded"}, "--labels graded needs grades or degrees: give --scores RUN"),
        ({"antonym_score": 0.2}, "--antonym-score is for --labels ordinal or graded"),
    ],
)
def test_options_that_cannot_be_used_are_refused(runs, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        build_ensemble(EnsembleConfig(runs, tmp_path / "out", **options))


@pytest.mark.parametrize(
    ("options", "labels", "score"),
    [
        ({"purpose": "opposites"}, "ordinal", 0.2),
        ({"purpose": "topics"}, "ordinal", 0.5),
        ({"purpose": "opposites", "antonym_score": 0.1}, "ordinal", 0.1),
        ({"purpose": "opposites", "labels": "binary"}, "binary", 0.0),
        ({"labels": "ordinal"}, "ordinal", 0.5),
        ({}, "binary", 0.0),
    ],
)
def test_the_purpose_scores_antonyms_and_stands_in_every_row(runs, tmp_path, options, labels, score):
    build_ensemble(EnsembleConfig(runs, tmp_path / "out", **options))
    rows = [row for split in split_rows(tmp_path / "out").values() for row in split]
    assert {row["score"] for row in rows if row["polarity"] == "antonym"} == {score}
    assert {row.get("purpose", "no column") for row in rows} == {options.get("purpose", "no column")}
    settings = report(tmp_path / "out")["settings"]
    assert (settings["labels"], settings.get("purpose")) == (labels, options.get("purpose"))
    assert ("| `purpose` |" in card(tmp_path / "out")) == ("purpose" in options)


@pytest.mark.parametrize(
    ("options", "now", "apart", "related"),
    [
        ("", "0", "0.2", "0.5"),
        ("--labels ordinal", "0.5", "0.2", "0.5"),
        ("--labels binary", "0", "0", "0.5, not with --labels binary"),
        ("--labels ordinal --antonym-score 0.3", "0.3", "0.3", "0.3"),
    ],
)
def test_the_question_of_the_purpose_says_what_opposites_score(runs, tmp_path, options, now, apart, related):
    _, _, said = run_here(main, "ensemble", *runs, "--out", tmp_path / "out", *options.split())
    assert f"score {now}. --purpose opposites: yes ({apart}); --purpose topics: no," in said
    assert f"they are related ({related}); fit" in said


def test_build_refuses_to_write_over_other_files_or_into_a_run(runs, tmp_path):
    out = tmp_path / "mine"
    (out / "dataset").mkdir(parents=True)
    (out / "report.json").write_text("{}")
    with pytest.raises(InputError, match=r"mine is not empty and holds no earlier data set; give another"):
        build_ensemble(EnsembleConfig(runs=runs, out=out))
    assert (out / "report.json").read_text() == "{}"
    for taken, scores in ((runs[0], ()), (out, (out,))):
        with pytest.raises(InputError, match=r"is one of the runs; give another directory"):
            build_ensemble(EnsembleConfig(runs=runs, out=taken, scores=scores))
    build_ensemble(EnsembleConfig(runs=runs, out=(other := tmp_path / "other")))
    for name in ("report.json", "rejected.jsonl"):
        (other / name).unlink()  # what is left may be of `gis rehydrate`
    with pytest.raises(InputError, match=r"other is not empty and holds no earlier data set"):
        build_ensemble(EnsembleConfig(runs=runs, out=other))


def test_a_build_of_other_runs_or_settings_says_that_it_replaces_one(runs, tmp_path):
    def said(*arguments):
        code, shown, errors = run_here(main, "ensemble", *arguments, "--out", tmp_path / "out", "--quiet")
        assert (code, shown) == (0, "")
        return errors

    assert said(*runs) == ""
    assert said(*reversed(runs)) == ""
    line = f"{tmp_path / 'out'}: replaced a data set of other runs, grades or settings\n"
    grades = write_scores(tmp_path / "grades", rows_of("alpha"))
    for change in ((), ("--seed", 1), ("--scores", grades)):
        assert said(runs[0], *change) == line
        assert said(runs[0], *change) == ""
    write_scores(grades, rows_of("alpha")[3:])
    assert said(runs[0], "--scores", grades).endswith(line)
    (tmp_path / "out" / "report.json").write_text('{"settings": {}, "runs": [1]}')
    code, _, errors = run_here(main, "ensemble", *runs, "--out", tmp_path / "out")
    assert (code, errors.count("\n")) == (1, 1)


def write_scores(path, rows, model="judge"):
    """Grades that put synonyms at 4 and antonyms at 1, higher by the number of the source."""
    graded = []
    for r in rows:
        score = (4 if r["polarity"] == "synonym" else 1) + int(r["source_id"][1:]) / 20
        graded.append({"text1": r["source"], "text2": r["text"], "score": score, "model": model, "key": "k"})
    return write_grades(path, graded)


def test_graded_labels_follow_the_grades(runs, tmp_path):
    graded = [r for r in rows_of("alpha") if r["source_id"] != "t3"]
    scores = (write_scores(tmp_path / "s1", graded), write_scores(tmp_path / "s2", graded, "jury"))
    options = {"labels": "graded", "scores": scores, "antonym_score": 0.4, "ratios": (1.0,)}
    build_ensemble(EnsembleConfig(runs, tmp_path / "out", **options))
    rows = split_rows(tmp_path / "out")["train"]
    by_text = {r["text2"]: r for r in rows}
    assert Counter(r["polarity"] for r in rows)["random"] == 12  # one for each text, as with ordinal labels
    antonym = by_text["Our node recovered on host2 before window2."]
    # Antonyms stand about their score; this one was graded 1.1, others 1 to 1.55.
    assert antonym["score"] == 0.4
    assert antonym["label"] == 0
    ungraded = by_text["Our cache recovered on host3 before window3."]
    assert ungraded["score"] == pytest.approx(0.4, abs=1e-3)
    assert ungraded["weight"] < antonym["weight"] < 1
    assert 0.85 < by_text["Before window2 beta saw the node of host2 crash."]["score"] < 1.0
    said = [f"host{i}: {subject} crash, ahead of window{i}" for i, subject in enumerate(SUBJECTS) if i != 3]
    synonyms = [by_text[text]["score"] for text in said]
    assert synonyms == sorted(synonyms)
    assert synonyms[0] < synonyms[-1] <= 1
    assert all(round(10 * row["score"], 6).is_integer() for row in rows)  # half points
    found = report(tmp_path / "out")
    assert found["settings"]["graders"] == "judge, jury"
    # Candidate pairs are two synonyms of each annotator and the shared antonym, less one shared; expected are
    # the scores of beta's own synonyms, and of the three pairs of t3.
    counts = {"pairs": 33, "unknown_pairs": 0, "candidate_pairs": 48, "graded_pairs": 33, "sha256": ""}
    counts |= {"rows": {"judge": 33, "jury": 33}, "labelled": {"graded": 33, "expected": 15}}
    assert found["scores"] | {"sha256": ""} == counts


def test_grades_of_other_pairs_are_counted(runs, tmp_path, caplog):
    rows = [*rows_of("alpha"), row("Disk full.", "synonym", "No space.", "alpha", "t1")]
    scores = (write_scores(tmp_path / "s", rows),)
    with caplog.at_level("INFO", logger="angle.ensemble"):
        build_ensemble(EnsembleConfig(runs, tmp_path / "out", scores=scores))
    assert "1 of 37 graded pairs are no candidates" in caplog.text
    assert report(tmp_path / "out")["scores"]["unknown_pairs"] == 1


def test_an_unfinished_run_is_named(tmp_path, caplog):
    run = write_run(tmp_path / "run", rows_of("alpha"), {"finished": False, "usd": 1.5})
    done = write_run(tmp_path / "done", rows_of("beta"), {"finished": True})
    build_ensemble(EnsembleConfig((run, done), tmp_path / "out"))
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == f"{run} is unfinished: run its `angle-data llm-label` command again to complete it"
    alpha, beta = report(tmp_path / "out")["runs"]
    assert alpha["finished"] is False
    assert "finished" not in beta
    assert (alpha["usd"], beta.get("usd")) == (1.5, None)
    assert "- alpha: 36 candidates, unfinished\n- beta: 36 candidates\n" in card(tmp_path / "out")


def test_a_killed_build_can_be_done_again(runs, tmp_path):
    build_ensemble(EnsembleConfig(runs, tmp_path / "whole"))
    out = tmp_path / "out"
    part = out / ".dataset.writing-abc" / "new" / "data"
    part.mkdir(parents=True)
    (part / "train-00000-of-00001.parquet").write_text("half")
    (out / ".rejected.jsonl.x1").write_text("{")
    build_ensemble(EnsembleConfig(runs, out))
    assert tree(out) == tree(tmp_path / "whole")
    (out / "report.json").unlink()  # killed between the data set and its report
    (out / ".report.json.x1").write_text("{")
    build_ensemble(EnsembleConfig(runs, out))
    assert tree(out) == tree(tmp_path / "whole")


def test_the_command_can_be_quiet_and_a_mistake_is_one_line(runs, tmp_path):
    """What it prints otherwise is among the golden outputs."""
    options = (*runs, "--out", tmp_path / "out", "--ratios", "1", "--quiet")
    assert run_here(main, "ensemble", *options) == (0, "", "")
    message = "angle-data: error: unknown strategy 'best'; choose one of concat, principled, vote\n"
    assert run_here(main, "ensemble", *options, "--strategy", "best") == (1, "", message)
