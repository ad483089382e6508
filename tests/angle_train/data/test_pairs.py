"""Pairs from every kind of source, their score scales, what is refused and in which words."""

from pathlib import Path

import numpy as np
import pytest
from train_runs import dataset, pair_set, write

from angle_data.errors import InputError
from angle_data.tables import TEXT_COLUMNS
from angle_train.data.kinds import kind_of
from angle_train.data.pairs import join, load_pairs
from angle_train.data.sources import labels_usd, pair_in

ROWS = [
    {"text1": "disk full", "text2": "no space left", "score": 1.0},
    {"text1": "disk full", "text2": "disk empty", "score": 0.5},
    {"text1": "disk full", "text2": "login fails", "score": 0.0},
]


def scored(scores):
    """Rows with these scores."""
    return [{"text1": f"a{i}", "text2": f"b{i}", "score": score} for i, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (ROWS, ""),
        ([*ROWS, ROWS[1]], "1 pair repeated; each copy counts"),
        ([*ROWS, ROWS[1] | {"score": 0.9}], "1 pair repeated, 1 with another score; each copy counts"),
    ],
)
def test_repeated_pairs_are_told_and_stay(tmp_path, caplog, rows, told):
    with caplog.at_level("INFO", logger="angle"):
        assert len(load_pairs(write(tmp_path / "x.jsonl", rows))) == len(rows)
    assert told in caplog.text
    assert ("repeated" in caplog.text) == bool(told)


def test_a_run_of_llm_score_gives_its_graded_pairs_on_their_scale(tmp_path, caplog):
    (tmp_path / "report.json").write_text('{"runs": [{"usd": 1.0}]}')  # of something else
    run = tmp_path / "judged"
    run.mkdir()
    write(run / "scores.jsonl", scored([0, 1, 1]))  # by a prompt of the user's, so without a scale
    (run / "run.json").write_text('{"command": "llm-score", "finished": false}')
    with caplog.at_level("INFO", logger="angle"):
        pairs = load_pairs(str(run), "validation", "0-5")
    assert (pairs.name, pairs.score.tolist()) == ("judged", [0, 0.2, 0.2])
    assert f"{run} is a run of llm-score: its scores.jsonl is read" in caplog.text
    assert caplog.text.count(f"{run} is not finished; the pairs that it has graded so far are used") == 1
    assert labels_usd(str(run)) == 0


def test_other_names_weights_and_sources_are_understood(tmp_path):
    rows = [
        {"sentence1": "a", "sentence2": "b", "label": 1, "weight": 0.5, "source_id": 7},
        {"sentence1": "c", "sentence2": "d", "label": 0, "weight": 1, "source_id": 8},
    ]
    pairs = load_pairs(write(tmp_path / "x.jsonl", rows))
    assert (list(pairs.text1), pairs.score.tolist(), pairs.weight.tolist()) == (
        ["a", "c"],
        [1.0, 0.0],
        [0.5, 1.0],
    )
    assert pairs.source_ids == ["7", "8"]


@pytest.mark.parametrize(
    ("scores", "stated", "expected", "scale"),
    [
        ([0, 1], None, [0, 1], "0-1"),
        ([0.2, 0.9], None, [0.2, 0.9], "0-1"),
        ([0, 2.5, 5], None, [0, 0.5, 1], "0-5"),
        ([0.4, 3.8], None, [0.08, 0.76], "0-5"),
        ([1, 3, 5], None, [0, 0.5, 1], "1-5"),
        ([1, 3, 4.5], "1-5", [0, 0.5, 0.875], "1-5"),
        ([0, 1, 2], "0-2", [0, 0.5, 1], "0-2"),
        ([20, 80], "0-100", [0.2, 0.8], "0-100"),
        ([-1, 0.5], "-1-1", [0, 0.75], "-1-1"),
        ([0, 1], "0-5", [0, 0.2], "0-5"),
    ],
)
def test_scores_are_mapped_to_unit_range(tmp_path, scores, stated, expected, scale):
    pairs = load_pairs(write(tmp_path / "pairs.jsonl", scored(scores)), scale=stated)
    assert pairs.score.tolist() == pytest.approx(expected)
    assert pairs.scale.startswith(scale + ",")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([1, 3, 4.5], [0, 0.5, 0.875]), ([2, 3, 5], [0.25, 0.5, 1]), ([2, 4], [0.25, 0.75])],
)
def test_scores_from_1_on_are_assumed_to_be_on_1_to_5_with_a_warning(tmp_path, caplog, scores, expected):
    file = tmp_path / "pairs.jsonl"
    pairs = load_pairs(write(file, scored(scores)))
    assert pairs.score.tolist() == pytest.approx(expected)
    assert pairs.scale == f"1-5, assumed (lowest score {scores[0]}, highest {scores[-1]})"
    (warning,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert "pairs: " in warning
    assert "--scale 0-5 or --scale 1-5" in warning
    caplog.clear()
    load_pairs(write(file, scored(scores)), scale="1-5")
    load_pairs(write(file, scored([1, 3, 5])))
    load_pairs(write(file, scored([0.5, 4])))
    assert "WARNING" not in caplog.text


def test_a_file_that_names_its_scale_is_on_it_whatever_is_stated_for_others(tmp_path, caplog):
    """As `angle-data grade` writes it; a column of that name may hold something else, too."""
    file = tmp_path / "pairs.jsonl"
    rows = [row | {"scale": "0-5"} for row in scored([2, 3, 4])]
    for stated in (None, "1-5"):
        pairs = load_pairs(write(file, rows), scale=stated)
        assert pairs.score.tolist() == pytest.approx([0.4, 0.6, 0.8])
        assert pairs.scale == "0-5, as the file says"
    assert "WARNING" not in caplog.text
    assert load_pairs(write(file, [row | {"scale": "large"} for row in rows])).scale.startswith(
        "1-5, assumed"
    )
    assert load_pairs(write(file, [*rows, *scored([1, 5])])).scale.startswith("1-5, detected")
    with pytest.raises(InputError, match=r"pairs.jsonl:1: score 6 is outside .* fix the row or its column"):
        load_pairs(write(file, [rows[0] | {"score": 6}, *rows]))
    with pytest.raises(InputError, match=r"the column scale says 0-5 and 1-7; bring all scores on one scale"):
        load_pairs(write(file, [rows[0] | {"scale": "1-7"}, *rows]))
    with pytest.raises(InputError, match=r"pairs.jsonl: column scale: scale '5-0' must be LOW-HIGH"):
        load_pairs(write(file, [row | {"scale": "5-0"} for row in rows]))


@pytest.mark.parametrize(
    ("scores", "threshold", "kept", "labels", "note"),
    [
        ([0, 2.5, 3, 3.5, 5], 3, [0, 1, 3, 4], [0, 0, 1, 1], "0-5, detected (lowest score 0, highest 5); "
         "2 above 3 are label 1, 2 below it 0, 1 at it left out"),
        ([0, 0.4, 0.6], 0.5, [0, 1, 2], [0, 0, 1],
         "0-1, detected; 1 above 0.5 are label 1, 2 below it 0"),
        # 0.6 that has been through float32, or through a sum
        ([0, float(np.float32(0.6)), 2 * (0.1 + 0.2), 0.7], 0.6, [0, 3], [0, 1],
         "0-1, detected; 1 above 0.6 are label 1, 1 below it 0, 2 at it left out"),
        # labels already: one threshold may be for grades in another file
        ([1, 1, 0], 3, [0, 1, 2], [1, 1, 0], "0-1, detected; labels already"),
        ([1, 1], 3, [0, 1], [1, 1], "0-1, detected; labels already"),
    ],
)  # fmt: skip
def test_a_threshold_makes_labels_of_scores_on_their_own_scale(
    tmp_path, scores, threshold, kept, labels, note
):
    file = write(tmp_path / "pairs.jsonl", scored(scores))
    pairs = load_pairs(file, threshold=threshold, one_score=True)
    assert pairs.text1 == [f"a{i}" for i in kept]
    assert (pairs.score.tolist(), pairs.scale) == (labels, note)
    assert pairs.labels
    assert not load_pairs(file, one_score=True).labels


@pytest.mark.parametrize(("above", "warned"), [(9, True), (10, False)])
def test_a_threshold_that_leaves_few_of_a_label_is_warned_of(tmp_path, caplog, above, warned):
    file = write(tmp_path / "pairs.jsonl", scored([0] + [1] * 40 + [4] * above))
    load_pairs(file, threshold=3, scale="0-5")
    said = f"--threshold 3 gives label 1 to {above} pairs and 0 to 41; fewer than 10 of one label say little"
    assert (said in caplog.text) == warned


@pytest.mark.parametrize("supervision", ["", "grades", "degrees"])
def test_labels_decide_the_objective_and_not_who_gave_the_scores(tmp_path, supervision):
    """What is known of the pairs stays: random pairs stand at the end of every scale."""
    rows = [row | {"supervision": supervision} for row in scored([0, 1, 2, 4, 5])]
    rows += [row | {"supervision": "random"} for row in scored([0])]
    file = write(tmp_path / "pairs.jsonl", rows)
    pairs = load_pairs(file, threshold=3)
    assert pairs.supervision == [supervision] * 5 + ["random"]
    assert kind_of(pairs)[0] == "binary"
    assert kind_of(load_pairs(file))[0] != "binary"
    assert join([pairs, pairs]).labels
    assert not join([pairs, load_pairs(file)]).labels


@pytest.mark.parametrize(
    ("scores", "threshold", "message"),
    [
        (
            [0, 2, 5],
            5,
            r"pairs.jsonl: --threshold 5 must lie above 0 and below 5, the ends of its scale: 0-5",
        ),
        ([0, 0.5, 1], 3, r"--threshold 3 must lie above 0 and below 1"),
        ([0, 2, 3], 3, r"no score lies above --threshold 3; they go from 0 to 3"),
        ([3, 4, 0.5], 0.5, r"no score lies below --threshold 0.5; they go from 0.5 to 4"),
    ],
)
def test_a_threshold_that_parts_no_scores_is_refused(tmp_path, scores, threshold, message):
    with pytest.raises(InputError, match=message):
        load_pairs(write(tmp_path / "pairs.jsonl", scored(scores)), threshold=threshold)


@pytest.mark.parametrize(
    ("scores", "stated", "message"),
    [
        ([0, 1, 7], None, r"pairs.jsonl:3: score 7 fits no known scale .* give it with --scale LOW-HIGH"),
        ([0.5, -0.25], None, r"pairs.jsonl:2: score -0.25 fits no known scale"),
        ([0, 2, 1], None, r"pairs.jsonl:2: scores 0 to 2 may be classes or grades; .* --scale 0-2"),
        ([0, 6], "0-5", r"pairs.jsonl:2: score 6 is outside the scale 0-5"),
        ([0, 2], "1-5", r"pairs.jsonl:1: score 0 is outside the scale 1-5"),
        ([0, 1], "5-1", r"scale '5-1' must be LOW-HIGH with LOW below HIGH"),
        ([0, 1], "five", r"scale 'five' must be LOW-HIGH"),
        ([3, 3, 3], None, r"all 3 scores are 3; a ranking needs different scores"),
        ([1], None, r"the only score is 1; a ranking needs"),
        ([0, float("nan")], None, r"pairs.jsonl:2: score must be a number, got nan"),
        ([0, "high"], None, r"pairs.jsonl:2: score must be a number, got 'high'"),
        ([0, None], None, r"pairs.jsonl:2: score must be a number, got None"),
    ],
)
def test_unusable_scores_are_refused(tmp_path, scores, stated, message):
    with pytest.raises(InputError, match=message):
        load_pairs(write(tmp_path / "pairs.jsonl", scored(scores)), scale=stated)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"x.jsonl holds no pairs"),
        ("{not json}", r"x.jsonl:1: not valid JSON"),
        (
            '{"hash1": "ab", "hash2": "cd", "label": 1}',
            r"holds the ids of issues without their texts; `angle-data gis rehydrate --data .+ --out DIR`",
        ),
        (
            '{"source_id": "1", "source": "a", "polarity": "synonym", "text": "b", "model": "m", "key": "k"}',
            r"x.jsonl holds sentences of llm-label; `angle-data ensemble RUN` makes pairs$",
        ),
        (
            '{"text1": "a", "score": 1}',
            r"no text columns text1, text2 or sentence1, sentence2 or .* \(with a score or label\), nor "
            r"anchor, positive and optionally negative; found: text1, score",
        ),
        ('{"text1": "a", "text2": "b"}', r"no column score, .*label or is_duplicate; found: text1, text2"),
        (
            '{"text1": "a", "text2": "b", "score": 1}\n{"text1": "a", "text2": " ", "score": 0}',
            r"x.jsonl:2: text2 must be a text that is not blank, got ' '",
        ),
        (
            '{"text1": "a", "text2": "b", "score": 1}\n{"text1": "a", "score": 0}',
            r"x.jsonl:2: text2 must be a text that is not blank, got None",
        ),
        (
            '{"text1": "a", "text2": "b", "score": 1, "weight": 0}',
            r"x.jsonl:1: weight must be above 0 and at most 1, got 0",
        ),
    ],
)
def test_malformed_rows_are_named(tmp_path, content, message):
    path = tmp_path / "x.jsonl"
    path.write_text(content + ('\n{"text1": "c", "text2": "d", "score": 0}' if "weight" in content else ""))
    with pytest.raises(InputError, match=message):
        load_pairs(str(path))


@pytest.mark.parametrize("inside", ["", "dataset"])
def test_dataset_directories_are_read_by_split(tmp_path, inside):
    folder = tmp_path / "run" / inside
    dataset(folder, train=ROWS[:2], test=ROWS[1:])
    second = dataset(tmp_path / "second", train=ROWS[2:])
    Path(second, "data", "train-00000-of-00001.parquet").rename(
        folder / "data" / "train-00001-of-00002.parquet"
    )
    for spec in {str(tmp_path / "run"), str(folder)}:
        assert len(load_pairs(spec)) == 3
        test = load_pairs(spec, split="test")
        assert (test.name, test.score.tolist()) == ("run/test", [0.5, 0.0])
    with pytest.raises(InputError, match=r"has no split 'validation'; splits found: test, train"):
        load_pairs(str(tmp_path / "run"), split="validation")
    assert len(load_pairs(str(folder / "data"))) == 3
    with pytest.raises(InputError, match=r"is not a dataset directory"):
        load_pairs(str(tmp_path))


@pytest.mark.parametrize(
    ("scores", "stated", "expected", "note"),
    [
        ([1.0, 3.0, 4.5], "1-5", [0, 0.5, 0.875], "1-5, as stated"),
        ([0.0, 40.0, 80.0], "0-100", [0, 0.4, 0.8], "0-100, as stated"),
        ([0.0, 0.5, 1.0], "0-1", [0, 0.5, 1], "0-1, as stated"),
        # What `angle-data` wrote, beside a file on another scale.
        ([0.0, 0.5, 1.0], "0-100", [0, 0.5, 1], "0-1, detected; the stated 0-100 is for the other sources"),
    ],
)
def test_a_stated_scale_is_applied_to_dataset_directories_off_the_unit_scale(
    tmp_path, scores, stated, expected, note
):
    pairs = load_pairs(dataset(tmp_path, train=scored(scores)), scale=stated)
    assert pairs.score.tolist() == pytest.approx(expected)
    assert pairs.scale == note


@pytest.mark.parametrize(
    ("rows", "expected"), [("dev", ["a1"]), ("validation", ["a1"]), (None, ["a0", "a1", "a2"])]
)
def test_rows_of_a_split_column_are_selected(tmp_path, rows, expected):
    parts = ["train", "validation", "test"]
    content = [
        {"text1": f"a{i}", "text2": "b", "score": i / 2, "split": part} for i, part in enumerate(parts)
    ]
    extra = [{"text1": "a1", "text2": "c", "score": 0, "split": "validation"}]
    pairs = load_pairs(write(tmp_path / "x.jsonl", content + extra), rows=rows)
    assert sorted(set(pairs.text1)) == expected


def test_join_keeps_order_and_separates_sources():
    first = pair_set([("a", "b"), ("c", "d")], source_ids=["1", "2"])
    second = pair_set([("e", "f")], [0.5], source_ids=["1"])
    both = join([first, second])
    assert list(both.text1) == ["a", "c", "e"]
    assert both.score.tolist() == [0.0, 1.0, 0.5]
    assert len(set(both.source_ids)) == 3
    unnamed = join([first, pair_set([("G!", "h")], [0.5])])
    assert (unnamed.source_ids, unnamed.sources()) == (None, ["a", "c", "g"])
    assert join([first]) is first


def test_score_is_preferred_to_label_and_half_a_surrogate_pair_replaced(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"text1": "a \\ud83d", "text2": "b", "label": 0, "score": 0.5}\n'
        '{"text1": "c", "text2": "d", "label": 0, "score": 0}\n'
    )
    pairs = load_pairs(str(path))
    assert (pairs.text1[0], pairs.score.tolist()) == ("a \ufffd", [0.5, 0.0])


def labelled(tmp_path, labels, names=("premise", "hypothesis"), name="nli.jsonl"):
    first, second = names
    rows = [{first: f"a{i}", second: f"b{i}", "label": label} for i, label in enumerate(labels)]
    return write(tmp_path / name, rows)


@pytest.mark.parametrize(
    ("labels", "names", "expected", "told"),
    [
        (
            ["entailment", "neutral", "contradiction"],
            ("sentence1", "sentence2"),
            [1, 0.5, 0],
            "contradiction 0",
        ),
        (["ENTAILMENT", "-", "CONTRADICTION"], ("premise", "hypothesis"), [1, 0], "; 1 row without a class"),
        ([0, 1, 2, -1], ("premise", "hypothesis"), [1, 0.5, 0], "(written 0, 1, 2, as in SNLI); 1 row"),
        (["2", "0"], ("premise", "hypothesis"), [0, 1], "(written 0, 1, 2, as in SNLI)"),
    ],
)
def test_classes_of_inference_are_scores_and_said_to_be(tmp_path, caplog, labels, names, expected, told):
    with caplog.at_level("INFO", logger="angle"):
        pairs = load_pairs(labelled(tmp_path, labels, names))
    assert pairs.score.tolist() == expected
    assert "0-1: labels read as entailment 1, neutral 0.5, contradiction 0" in caplog.text
    assert told in caplog.text


def test_labels_0_and_1_of_premises_are_not_guessed(tmp_path):
    path = labelled(tmp_path, [0, 1])
    with pytest.raises(InputError, match=r"nli.jsonl:1: labels 0 and 1 of premise and hypothesis may be"):
        load_pairs(path)
    assert load_pairs(path, scale="0-1").score.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"odd.jsonl:2: label must be entailment, neutral, .* got 'maybe'"):
        load_pairs(labelled(tmp_path, ["neutral", "maybe"], name="odd.jsonl"))
    unsure = write(tmp_path / "unsure.jsonl", rows_of([("dev", "-"), ("test", "neutral")], "label"))
    with pytest.raises(InputError, match=r"no row has a class"):
        load_pairs(unsure, rows="dev")


def rows_of(scores, column="score"):
    """Rows of several splits."""
    return [{"text1": "a", "text2": f"b{i}", column: s, "split": part} for i, (part, s) in enumerate(scores)]


@pytest.mark.parametrize(
    ("others", "expected", "scale"),
    [([1, 5, 3], [0.25, 0.75], "1-5, detected"), ([0.5, 5, -1, None], [0.4, 0.8], "0-5, detected")],
)
def test_the_scale_is_that_of_all_splits_of_a_source(tmp_path, others, expected, scale):
    rows = rows_of([("dev", 2.0), ("dev", 4.0), *(("train", score) for score in others)])
    pairs = load_pairs(write(tmp_path / "splits.jsonl", rows), rows="dev")
    assert (pairs.score.tolist(), pairs.scale.startswith(scale)) == (pytest.approx(expected), True)
    dataset(tmp_path, **{s: [row for row in rows if row["split"] == s] for s in ("dev", "train")})
    pairs = load_pairs(str(tmp_path), split="dev")
    assert (pairs.score.tolist(), pairs.scale.startswith(scale)) == (pytest.approx(expected), True)


@pytest.mark.parametrize("first", ["text1", "sentence1", "question1", "sentence_A", "premise", "question"])
def test_pairs_and_tasks_know_the_same_names(tmp_path, first):
    second = dict(TEXT_COLUMNS)[first]
    rows = [{first: "a", second: f"b{i}", "relatedness_score": i} for i in range(6)]
    path = write(tmp_path / "test.jsonl", rows)
    assert load_pairs(path).score.tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert [pair_in(row, "here") for row in rows] == [("a", f"b{i}") for i in range(6)]


@pytest.mark.parametrize(
    ("name", "content", "scores"),
    [
        ("t.csv", 'sentence1;sentence2;score\n"a; b";c;3,5\nd;e;0\nf;g;5\n', [0.7, 0, 1]),
        ("t.tsv", 'text1\ttext2\tlabel\n"a\tb\tTrue\nc "d"\te\tFalse\n"f\tg"\tyes\n', [1, 0, 1]),
        ("t.csv", "text1,text2,is_duplicate\na,b,yes\nc,d,No\n", [1, 0]),
        ("t.tsv", "gold_label\tsentence1\tsentence2\nentailment\ta\tb\n-\tc\td\nneutral\te\tf\n", [1, 0.5]),
        ("t.csv", "sentence1,sentence2,label\na,b,entailment\nc,d,not_entailment\n", [1, 0]),
        (
            "t.json",
            '[{"text1": "a", "text2": "b", "label": true}, {"text1": "c", "text2": "d", "label": 0}]',
            [1, 0],
        ),
    ],
)
def test_scores_are_read_as_programs_and_people_write_them(tmp_path, name, content, scores):
    (tmp_path / name).write_text(content)
    pairs = load_pairs(str(tmp_path / name))
    assert pairs.score.tolist() == scores
    assert pairs.name == "t"


def test_ids_of_pandas_are_the_same_ids(tmp_path):
    rows = [
        {"text1": "a", "text2": "b", "score": s, "source_id": i} for s, i in ((1, 12.0), (0, "12"), (1, 12))
    ]
    assert load_pairs(write(tmp_path / "t.jsonl", rows)).source_ids == ["12"] * 3
    rows[0]["source_id"] = float("nan")
    assert load_pairs(write(tmp_path / "t.jsonl", rows)).source_ids is None


def test_saved_data_sets_and_shards_without_splits_are_read_whole(tmp_path):
    from datasets import Dataset

    rows = [{"text1": "a", "text2": "b", "score": 1.0}, {"text1": "c", "text2": "d", "score": 0.0}]
    Dataset.from_list(rows).save_to_disk(tmp_path / "saved")
    pairs = load_pairs(str(tmp_path / "saved"), split="validation")
    assert (len(pairs), pairs.name) == (2, "saved")


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
def test_a_missing_text_is_named(tmp_path, missing):
    rows = [{"text1": "a", "text2": "b", "score": 1}, {"text1": "a", "text2": missing, "score": 0}]
    with pytest.raises(InputError, match=r"t.jsonl:2: text2 must be a text that is not blank, got .*; fix"):
        load_pairs(write(tmp_path / "t.jsonl", rows))


def test_a_table_without_a_header_is_told_so(tmp_path):
    (tmp_path / "x.csv").write_text("A dog runs.,A dog is running.,1\nA cat sleeps.,It rains.,0\n")
    with pytest.raises(InputError, match=r"found: A dog runs.*; the first line must name the columns$"):
        load_pairs(str(tmp_path / "x.csv"))
