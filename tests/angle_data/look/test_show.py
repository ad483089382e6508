"""What `angle-data show` tells of runs, ensembles, data sets and files, and how it looks in plain text."""

import json
from collections import Counter

import pytest
from typer.testing import CliRunner

from angle_data.cli import app
from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.look.show import look


def shown(*arguments):
    """What the command prints."""
    done = CliRunner().invoke(app, ["show", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def refused(*arguments, **options):
    with pytest.raises(InputError) as caught:
        look(*arguments, **{"n": 20, **options})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_run_of_labels_shows_every_count_and_a_sample_of_all_kinds(run):
    found = look(run, n=8)
    assert found["title"] == f"{run}: run of llm-label (unfinished)"
    assert found["kinds"] == {
        "kept": {"count": 24, "of": {"synonym": 12, "antonym": 12}},
        "rejected": {"count": 4, "of": {"synonym": 4, "echo": 2, "refusal": 2}},
    }
    assert found["annotators"] == {"ann": 28}
    drawn = Counter((item["kind"], item["group"], item["marks"]) for item in found["items"])
    assert drawn == {
        ("kept", "synonym", ()): 2, ("kept", "antonym", ()): 2,
        ("rejected", "synonym", ("echo",)): 2, ("rejected", "synonym", ("refusal",)): 2,
    }  # fmt: skip


def test_what_was_kept_and_rejected_of_a_text_is_drawn_together(run):
    texts = [item["text1"] for item in look(run, n=12, reason="kept")["items"]]
    assert len(texts) == 12
    assert texts[::2] == texts[1::2]  # six texts, a synonym and an antonym of each, next to each other


def test_every_text_comes_once_before_any_comes_again_whatever_the_order_of_the_rows(tmp_path):
    rows = [{"text1": f"a {n % 40}", "text2": f"b {n}", "kind": "near"} for n in range(120)]
    drawn = []
    for name, found in (("one", rows), ("other", rows[::-1])):
        write_jsonl(tmp_path / f"{name}.jsonl", found)
        drawn.append([item["text1"] for item in look(tmp_path / f"{name}.jsonl", n=7)["items"]])
    assert len(set(drawn[0])) == 7
    assert drawn[0] == drawn[1] != sorted(drawn[0])
    assert len({item["text1"] for item in look(tmp_path / "one.jsonl", n=45)["items"]}) == 40


def test_the_same_seed_draws_the_same_and_another_one_others(pairs):
    first, again, other = (look(pairs, n=20, seed=seed)["items"] for seed in (0, 0, 1))
    assert first == again != other


def test_an_ensemble_shows_pairs_with_their_numbers_and_what_was_dropped(pairs):
    found = look(pairs, n=500)
    assert found["kinds"] == {
        "flipped": {"count": 5, "of": {"synonym": 5}},
        "kept": {"count": 175, "of": {"antonym": 60, "random": 60, "synonym": 55}},
        "rejected": {"count": 2, "of": {"antonym": 2, "off_topic": 2}},
    }
    assert len(found["items"]) == found["count"] == 182
    item = next(item for item in found["items"] if item["text2"] == "antonym sentence 3")
    assert item["facts"] | {"supervision": ""} == {
        "score": 0.5, "label": 0, "weight": 0.9, "split": "validation", "supervision": "",
    }  # fmt: skip
    assert item["annotators"] == ("ann", "ben")
    assert {item["raw"] for item in found["items"]} == {""}  # it says nothing that the text does not


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"reason": "flipped"}, 5), ({"reason": "off_topic"}, 2), ({"reason": "random"}, 60),
        ({"reason": "rejected"}, 2), ({"annotator": "cem"}, 2),
    ],
)  # fmt: skip
def test_a_reason_or_an_annotator_shows_these_only(pairs, options, count):
    items = look(pairs, n=100, **options)["items"]
    assert len(items) == count
    (wanted,) = options.values()
    assert all(wanted in (i["kind"], i["group"], *i["marks"], *i["annotators"]) for i in items)


def test_grades_are_spread_over_their_range(grades):
    scores = {item["facts"]["score"] for item in look(grades, n=5, reason="kept")["items"]}
    assert scores in ({0, 1, 2, 3, 4}, {0, 1, 2, 3, 5})
    assert look(grades, n=1, reason="no_grade")["items"][0]["raw"] == "Sure!"


def test_issues_and_files_are_shown_by_their_kind_and_degrees_are_groups(issues, tmp_path):
    assert look(issues, n=9)["kinds"]["kept"]["of"] == {"random": 2, "duplicate": 2}
    mined = [{"text1": f"a {n}", "text2": f"b {n}", "kind": "near"} for n in range(3)]
    write_jsonl(tmp_path / "mined.jsonl", mined)
    assert look(tmp_path / "mined.jsonl", n=9)["kinds"] == {"kept": {"count": 3, "of": {"near": 3}}}
    row = {"source_id": "1", "source": "a", "polarity": None, "text": "b", "model": "m", "key": "k"}
    write_jsonl(tmp_path / "candidates.jsonl", [row | {"degree": degree} for degree in (5, 5, 2)])
    found = look(tmp_path, n=2)
    assert found["kinds"]["kept"]["of"] == {"degree-5": 2, "degree-2": 1}
    assert {item["group"] for item in found["items"]} == {"degree-5", "degree-2"}


def test_what_cannot_be_shown_is_one_line_with_the_way_out(run, pairs, tmp_path):
    assert "nothing of ann is off_topic" in refused(pairs, reason="off_topic", annotator="ann")
    write_jsonl(tmp_path / "ids.jsonl", [{"hash1": "a", "hash2": "b"}])
    assert "angle-data gis rehydrate" in refused(tmp_path / "ids.jsonl")
    assert refused(run, reason="ekho").endswith("known: antonym, echo, kept, refusal, rejected, synonym")
    assert refused(run, annotator="bob").endswith("--annotator bob does not occur; known: ann")
    assert "--n must be at least 1" in refused(run, n=0)
    assert "is not a run or data set; give a folder written by llm-label" in refused(tmp_path)
    assert "is neither a folder nor a file of pairs" in refused(tmp_path / "away")
    assert "does not exist; check the path" in refused(tmp_path / "away.csv")
    (tmp_path / "notes.md").touch()
    assert "is neither a folder nor a file of pairs" in refused(tmp_path / "notes.md")
    write_jsonl(tmp_path / "texts.jsonl", [{"text": "alone"}])
    assert "texts.jsonl:1: no two texts; fields found: text" in refused(tmp_path / "texts.jsonl")
    for name in ("candidates.jsonl", "rejected.jsonl"):
        (run / name).write_text("")
    assert refused(run).endswith("rejected.jsonl: empty: nothing was kept and nothing was rejected")
    (run / "candidates.jsonl").unlink()
    (run / "journal.jsonl").touch()
    assert "stopped before writing its results; run its command again" in refused(run)


def test_plain_text_fits_80_columns_and_steers_no_terminal(run):
    text = shown(run, "--n", 50)
    title, *lines = text.splitlines()
    assert title.startswith(f"{run}: ")  # a path stays whole, however long
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "kept            24  synonym: 12, antonym: 12" in text
    assert "rejected · synonym · echo · ann" in text
    assert "(608 more characters)" in text  # of "reply 11 " and 900 letters; 300 are shown
    assert "28 of 28; --n shows more" in text
    assert "2 of 12; --n shows more" in shown(run, "--n", 2, "--reason", "antonym")
    assert "</script>" in text


def test_json_has_whole_replies_and_html_goes_beside_it_into_no_other_file(run, tmp_path):
    page = tmp_path / "look.html"
    found = json.loads(shown(run, "--json", "--html", page))
    replies = [item["raw"] for item in found["items"] if item["raw"]]
    assert sorted(len(reply) for reply in replies) == [908, 908, 908, 909]
    assert found["count"] == len(found["items"]) == 28
    assert shown(run, "--html", page, "--n", 3) == f"3 of 28 in {page}\n"
    done = CliRunner().invoke(app, ["show", str(run), "--html", str(run / "candidates.jsonl")])
    assert "ends in .html" in str(done.exception)
    assert (run / "candidates.jsonl").stat().st_size > 0
