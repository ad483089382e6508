"""What a build makes of grades that are poor, of other pairs, or of some pairs only."""

import json
import re
from contextlib import nullcontext

import pytest
from ensembles import card, report, write_grades, write_polar_run, write_run
from labelling_runs import read_rows

from angle_data.ensembling.build import build_ensemble
from angle_data.ensembling.config import EnsembleConfig
from angle_data.ensembling.read import read_scores
from angle_data.errors import InputError
from angle_data.text import pair_key

STRATEGIES = ("concat", "vote", "principled")
SOURCES = 24
NOUNS = ("disk", "queue", "node", "cache", "proxy", "index")


@pytest.fixture
def run(tmp_path):
    """A synonym and an antonym of each of 24 texts."""
    return write_polar_run(tmp_path / "run", [f"{NOUNS[i % 6]} of host{i}" for i in range(SOURCES)])


def grade(run, grader, *, poor=False, first=2 * SOURCES):
    """Grade the first candidates: synonyms 4 and antonyms 1; a poor grader confuses every second source."""
    rows = read_rows(run / "candidates.jsonl")[:first]
    graded = []
    for number, row in enumerate(rows):
        high = (row["polarity"] == "synonym") != (poor and number // 2 % 2 == 0)
        score = (4.0 if high else 1.0) + number / 100
        graded.append({"text1": row["source"], "text2": row["text"], "score": score, "model": grader})
    return write_grades(run.parent / f"by-{grader}", graded)


def build(run, out, *scores, **options):
    return build_ensemble(EnsembleConfig((run,), run.parent / out, scores=scores, **options))


def data(run, out):
    return {p.name: p.read_bytes() for p in (run.parent / out / "dataset" / "data").iterdir()}


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(("costs", "usd"), [((0.25, 0.5), 0.75), ((0.25, None), None)])
def test_the_cost_of_the_grades_is_reported_where_all_of_it_is_known(run, costs, usd):
    folders = [grade(run, grader) for grader in ("x", "y")]
    for folder, cost in zip(folders, costs, strict=True):
        (folder / "run.json").write_text(json.dumps({"usd": cost}))
    build(run, "out", *folders)
    assert report(run.parent / "out")["scores"].get("usd") == usd


# Of the 24 x 24 comparisons, 144 are won (neither is confused), 144 lost (both are); where one is, the later
# candidate wins: 78 and 66 times the synonym. In all 288 of 576.
POOR = "poor hardly tells synonyms from antonyms (area under the curve 0.50, 0.75 is needed)"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_poor_grader_labels_nothing(run, strategy, caplog):
    """The data are those of the good grader alone; its other pairs have the scores of such pairs."""
    good, poor = grade(run, "good", first=30), grade(run, "poor", poor=True)
    options = {"strategy": strategy, "labels": "graded"}
    build(run, "both", good, poor, **options)
    gap = "graded 30 of 48 candidate pairs; 18 of the 48 pairs kept have the score expected of such pairs"
    assert warnings(caplog) == [f"{POOR}: its grades are not used", gap]
    build(run, "alone", good, **options)
    assert data(run, "both") == data(run, "alone")
    found = report(run.parent / "both")
    assert found["settings"]["graders"] == "good"
    assert found["scores"]["rows"] == {"good": 30, "poor": 48}
    assert found["scores"]["graded_pairs"] == 30
    assert found["scores"]["labelled"] == {"graded": 30, "expected": 18}
    assert found["graders"]["poor"] == {"auc": 0.5, "auc_by_annotator": {"m": 0.5}, "used": False}
    assert found["graders"]["good"]["used"] is True
    assert f"- {POOR}: its grades are not used\n- {gap}\n" in card(run.parent / "both")


def test_with_no_grader_to_go_by_graded_labels_are_refused(run):
    message = re.escape(f"--labels graded has no grader to go by: {POOR}. Grade with another model or prompt")
    with pytest.raises(InputError, match=f"^{message}, or choose --labels ordinal$"):
        build(run, "out", grade(run, "poor", poor=True), labels="graded")
    assert not (run.parent / "out").exists()


def test_grades_of_some_candidates_are_counted(run, caplog):
    build(run, "out", grade(run, "good", first=44), labels="ordinal")
    assert warnings(caplog) == ["graded 44 of 48 candidate pairs"]
    scores = report(run.parent / "out")["scores"]
    assert (scores["candidate_pairs"], scores["graded_pairs"], "labelled" in scores) == (48, 44, False)
    assert "- graded 44 of 48 candidate pairs\n" in card(run.parent / "out")


def other_pairs(run):
    row = {"text1": "Disk full.", "text2": "No space.", "score": 4, "model": "good"}
    return write_grades(run.parent / "other", [row, row | {"text2": "Disk empty."}])


@pytest.mark.parametrize("labels", ["ordinal", "graded"])
def test_grades_of_other_pairs_or_of_own_sentences_alone_are_refused(run, labels):
    said = r"^--scores grades none of the 48 candidate pairs, or only what does not count \({} other pairs; "
    said += "nobody grades their own sentences.*name the file of the graded pairs with --pairs, or grade cand"
    for scores, others in ((other_pairs(run), 2), (grade(run, "m"), 0)):
        with pytest.raises(InputError, match=said.format(others)):
            build(run, "out", scores, labels=labels)
    assert not (run.parent / "out").exists()


@pytest.mark.parametrize(
    ("writer", "grader", "same"),
    [
        (("gpt-4o-mini-2024-07-18",), ("gpt-4o-mini",), True),
        (("gpt-4o-mini",), ("gpt-4o-mini-2024-07-18",), True),
        (("mistral-large-2402",), ("mistral-large-2411",), False),
        (("default", "http://one/v1"), ("default", "http://one/v1"), True),
        (("default", "http://one/v1"), ("default", "http://two/v1"), False),
        (("meta/llama", "http://one/v1"), ("meta/llama",), True),
        (("recorded-0123456789ab",), ("recorded-0123456789ab",), False),  # replies of both in one file
    ],
)
def test_a_model_is_known_by_what_is_behind_its_name(run, caplog, writer, grader, same):
    scores = grade(run, "good")
    for folder, (checkpoint, *servers) in ((run, writer), (scores, grader)):
        settings = {"checkpoint": checkpoint, "base_urls": servers}
        (folder / "run.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="grades none of the 48") if same else nullcontext():
        build(run, "out", scores)
        assert report(run.parent / "out")["settings"]["graders"] == "good"
    said = f"good is one model with m ({' at '.join(grader)}): its grades of these sentences do not count"
    assert (said in caplog.text) == same


def test_one_name_for_two_models_is_the_author_of_the_sentences_of_both(run, tmp_path, caplog):
    """Otherwise the order of the runs would say whose grades count."""
    again = write_polar_run(tmp_path / "again", ["pump of host1"])
    scores = grade(run, "good")
    for folder, checkpoint in ((run, "one"), (again, "two"), (scores, "two")):
        (folder / "run.json").write_text(json.dumps({"checkpoint": checkpoint}))
    for runs in ((run, again), (again, run)):
        with pytest.raises(InputError, match="or only what does not count"):
            build_ensemble(EnsembleConfig(runs, tmp_path / "out", scores=(scores,)))


def test_an_annotator_at_odds_with_good_grades_is_named(run, caplog):
    """Run n offers m's candidates in other words, two sevenths of them with the wrong polarity."""
    rows, scores = read_rows(run / "candidates.jsonl"), grade(run, "good")
    grades = read_rows(scores / "scores.jsonl")
    other = {"synonym": "antonym", "antonym": "synonym"}
    theirs = [r | {"model": "n", "text": f"In short: {r['text']}"} for r in rows]
    both = grades + [g | {"text2": r["text"]} for g, r in zip(grades, theirs, strict=True)]
    write_grades(scores, both)
    theirs = [r | {"polarity": other[r["polarity"]]} if i % 7 < 2 else r for i, r in enumerate(theirs)]
    runs = (run, write_run(run.parent / "n", theirs))
    build_ensemble(EnsembleConfig(runs, run.parent / "out", scores=(scores,)))
    (said,) = warnings(caplog)
    assert said.startswith("n: its polarities disagree with the grades (area under the curve: good 0.")
    assert f"- {said}\n" in card(run.parent / "out")
    assert report(run.parent / "out")["graders"]["good"]["used"] is True


@pytest.mark.parametrize("poor", [False, True])
def test_good_grades_choose_strategy_and_labels(run, poor):
    build(run, "out", grade(run, "x", poor=poor))
    settings = report(run.parent / "out")["settings"]
    found = [settings[name] for name in ("strategy", "labels", "random-per-source")]
    assert found == (["vote", "binary", 0] if poor else ["principled", "graded", 1])


def test_unfinished_grades_are_named(run, caplog):
    scores = grade(run, "good")
    (scores / "run.json").write_text(json.dumps({"finished": False}))
    build(run, "out", scores)
    assert "by-good is unfinished: run its `angle-data llm-score` command again" in caplog.text
    assert report(run.parent / "out")["scores"]["finished"] is False


def test_graded_labels_without_a_graded_pair_among_the_kept_are_refused(run):
    """The one graded pair was offered with either polarity, and goes."""
    rows, scores = read_rows(run / "candidates.jsonl"), grade(run, "good", first=1)
    write_run(run, [*rows, rows[0] | {"polarity": "antonym"}])
    message = "^--labels graded: none of the 47 pairs that are kept is graded .graded 1 of 48 candidate pairs"
    with pytest.raises(InputError, match=f"{message}.; grade more candidates, or choose --labels ordinal$"):
        build(run, "out", scores, labels="graded", strategy="vote")


ROW = {"text1": "Disk full.", "text2": "No space left.", "score": 4, "model": "judge", "key": "k"}


def test_grades_of_several_runs_and_graders(tmp_path):
    turned = ROW | {"text1": "no space LEFT", "text2": "disk full", "score": 3.0}
    others = [ROW | {"model": "other", "score": 0}, ROW | {"text2": "Disk empty.", "score": 1.5}]
    one, two = write_grades(tmp_path / "one", [ROW, turned]), write_grades(tmp_path / "two", others)
    graded = read_scores([one, two])
    key = pair_key("Disk full.", "No space left.")
    assert graded.grades == {
        key: {"judge": 3.5, "other": 0.0},  # graded twice by one: the mean
        pair_key("Disk full.", "Disk empty."): {"judge": 1.5},
    }
    assert graded.rows == {"judge": 3, "other": 1}
    assert read_scores([two, one]) == graded


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"score": bad}, "score must be a number from 0 to 5") for bad in (5.5, -1, "4", True, None)),
        ({"score": float("nan")}, "score must be a number from 0 to 5"),
        ({"text2": ""}, "text2 must be a non-empty string"),
        ({"text1": 7}, "text1 must be a non-empty string"),
        ({"model": None}, "model must be a non-empty string"),
    ],
)
def test_malformed_rows_are_named(tmp_path, change, message):
    run, (bad,) = write_grades(tmp_path / "run", [ROW, ROW | change]), change.values()
    with pytest.raises(InputError, match=rf"scores\.jsonl:2: {message}, got {bad!r}; .* anew"):
        read_scores([run])


def test_folders_without_grades_or_given_twice_are_refused(run, tmp_path):
    with pytest.raises(InputError, match=r"holds no scores.jsonl; give the folder of an `angle-data"):
        read_scores([tmp_path])
    with pytest.raises(InputError, match=r"run holds no scores.jsonl; give the folder of an `angle-data"):
        build(run, "out", run)
    for others in ((), (grade(run, "good"),)):
        with pytest.raises(InputError, match=r"empty.* holds no grades; see rejected.jsonl beside it"):
            build(run, "out", *others, write_grades(tmp_path / "empty", []))
    run = write_grades(tmp_path / "one", [ROW])
    with pytest.raises(InputError, match=r"--scores .*one is given twice"):
        read_scores([run, tmp_path / "." / "one"])
