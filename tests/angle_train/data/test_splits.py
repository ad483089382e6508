"""What each pair of a run is used for: dev pairs given or found, pairs held out, parts in turn, leaks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from train_runs import dataset, pair_set, run_data, write

from angle_data.errors import InputError
from angle_data.text import normalise
from angle_train.data.hold_out import cut, hold_out
from angle_train.data.sources import labels_usd
from angle_train.data.splits import run_leaks


def load(data, dev=(), test=(), **options):
    return run_data(data, (), dev, test, **options)


def sizes(data):
    return {pairs.name: len(pairs) for pairs in [data.train, *data.dev]}


def test_the_stated_scale_holds_for_training_dev_and_test_pairs(rows, tmp_path):
    # Twice the scores of 0-5: beyond every scale that is recognised.
    doubled = [row | {"score": 2 * row["score"]} for row in rows]
    files = [write(tmp_path / f"{start}.jsonl", doubled[start : start + 32]) for start in (0, 32, 64)]
    data = load(*([file] for file in files), scale="0-10")
    sets = [data.train, *data.dev, *data.test]
    assert {pairs.scale for pairs in sets} == {"0-10, as stated"}
    scores = np.concatenate([pairs.score for pairs in sets])
    assert scores == pytest.approx(np.array([row["score"] / 5 for row in rows[:96]]))


def test_a_threshold_makes_labels_of_training_pairs_alone(rows, tmp_path):
    """People's grades, dev and test pairs keep their scores: they are what labels are measured by."""
    rows = [row | {"score": number % 6} for number, row in enumerate(rows)]
    files = [write(tmp_path / f"{start}.jsonl", rows[start : start + 32]) for start in (0, 32, 64, 96)]
    data = run_data(*([file] for file in files), threshold=2)
    scores = [row["score"] for row in rows[:32]]
    assert data.others.score.tolist() == [float(score > 2) for score in scores if score != 2]
    assert data.others.labels
    for start, pairs in zip((32, 64, 96), (data.human, *data.dev, *data.test), strict=True):
        graded = [row["score"] for row in rows[start : start + 32]]
        assert pairs.score.tolist() == pytest.approx([score / 5 for score in graded])


def test_dev_pairs_that_come_from_the_data_are_labels_too(rows, tmp_path):
    """The validation split as well as what is held out."""
    rows = [row | {"score": number % 6} for number, row in enumerate(rows)]
    both = dataset(tmp_path / "both", train=rows[:32], validation=rows[32:64])
    alone = dataset(tmp_path / "alone", train=rows[:120])
    for data in (load([both], threshold=3), load([alone], threshold=3)):
        (dev,) = data.dev
        assert {*dev.score} == {*data.train.score} == {0.0, 1.0}


def test_labels_are_held_out_like_the_grades_that_they_were_made_of(tmp_path):
    """Graded pairs among given texts have a source each, and share their texts with others."""
    pairs = [
        {"text1": f"text {a}", "text2": f"text {b}", "score": (a + b) % 6, "source_id": f"{a}-{b}"}
        | {"supervision": "grades"}
        for a in range(60)
        for b in range(a + 1, min(a + 4, 60))
    ]
    file = write(tmp_path / "pairs.jsonl", pairs)
    for threshold in (None, 3):
        data = load([file], threshold=threshold)
        (dev,) = data.dev
        assert len(dev) > 3
        assert not {*dev.text1, *dev.text2} & {*data.train.text1, *data.train.text2}


@pytest.mark.parametrize("threshold", ["3", True, float("nan"), float("inf")])
def test_a_threshold_is_a_number(rows, tmp_path, threshold):
    with pytest.raises(InputError, match=f"--threshold must be a number .*, got {threshold!r}"):
        load([write(tmp_path / "pairs.jsonl", rows)], threshold=threshold)


def test_a_threshold_needs_scores_to_make_labels_of(rows, tmp_path):
    with pytest.raises(
        InputError, match=r"--threshold makes labels of the scores of --data; give --data too"
    ):
        run_data((), [write(tmp_path / "human.jsonl", rows)], threshold=3)


@pytest.mark.parametrize("prefix", ["", "hub:"])  # a directory stands in for the hub: load_dataset takes both
def test_the_validation_split_of_a_dataset_is_the_default_dev(rows, tmp_path, prefix):
    both = dataset(tmp_path / "both", train=rows[:32], validation=rows[32:44])
    assert sizes(load([prefix + both])) == {"both/train": 32, "both/validation": 12}
    alone = dataset(tmp_path / "alone", train=rows[:60])
    assert sizes(load([prefix + alone])) == {"alone/train": 54, "alone/train/held-out": 6}


def test_pairs_that_are_both_dev_and_test_are_counted(rows, tmp_path):
    """And left out where they train, those graded by people too; in either order and case of the texts."""
    turned = [
        row | {"sentence1": row["sentence2"].upper(), "sentence2": row["sentence1"]} for row in rows[60:90]
    ]
    parts = {"train": rows[:32], "dev": rows[32:64], "test": turned}
    files = [[write(tmp_path / f"{name}.jsonl", part)] for name, part in parts.items()]
    told = [leak.sentence() for leak in run_leaks(load(*files)) if leak.pairs]
    assert told == ["4 of 30 test pairs of test are dev pairs too"]
    human = run_data((), files[2], files[1], files[2], scale="0-5")
    assert [leak.pairs for leak in run_leaks(human)] == [4, 30, 4]
    human = run_data((), files[2], (), files[1], scale="0-5", drop_leaks=True)
    assert (len(human.train), human.dropped) == (26, {"leaks": 4})


def single(count):
    return pair_set([(f"a{i}", f"b{i}") for i in range(count)])


def test_hold_out_keeps_sources_together():
    pairs = replace(single(40), source_ids=[f"s{i // 4}" for i in range(40)])
    train, dev = hold_out(pairs, 0.25, seed=1)
    assert (len(train), len(dev)) == (32, 8)
    assert not set(train.source_ids) & set(dev.source_ids)
    assert dev.sha256() == hold_out(pairs, 0.25, seed=1)[1].sha256()
    assert dev.sha256() != hold_out(pairs, 0.25, seed=2)[1].sha256()


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=15, max_size=30), seed=st.integers(0, 99))
def test_hold_out_without_sources_shares_no_text(sizes, seed):
    # Chains of 1 to 4 pairs, each pair sharing a text with the next one up to case and punctuation.
    chains = [[(f"{c}-{i}", f"{c}-{i + 1}.") for i in range(size)] for c, size in enumerate(sizes)]
    train, dev = hold_out(pair_set([pair for chain in chains for pair in chain]), 0.3, seed)
    assert len(train) + len(dev) == sum(sizes)
    assert 0.15 * sum(sizes) <= len(dev) <= 0.3 * sum(sizes)
    texts = [{normalise(text) for text in (*part.text1, *part.text2)} for part in (train, dev)]
    assert not texts[0] & texts[1]


def evidence(sources, mined, seed):
    """Pairs of sources with five sentences each, and graded and random pairs of any two sources."""
    pairs = [(f"source {s}", f"sentence {s}-{d}") for s in range(sources) for d in range(5)]
    found = [("degrees", f"s{i // 5}", *pair) for i, pair in enumerate(pairs)]
    generator = np.random.default_rng(seed)
    for number in range(mined):
        a, b = generator.choice(sources, 2, replace=False)
        found.append((["grades", "random"][number % 4 == 0], f"s{a}", f"source {a}", f"Source {b}!"))
    # A graded sentence that stands nowhere else belongs to its source, as the others do.
    found += [("grades", "s0", "source 0", "only here")]
    kinds, ids, first, second = zip(*found, strict=True)
    pairs = pair_set(list(zip(first, second, strict=True)), source_ids=list(ids))
    return replace(pairs, supervision=list(kinds))


@pytest.mark.parametrize("sourced", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_mined_pairs_carry_no_text_from_the_training_part_into_the_held_out_one(sourced, seed, caplog):
    pairs = evidence(60, 120, seed)
    pairs = pairs if sourced else replace(pairs, source_ids=None)
    with caplog.at_level("INFO", logger="angle"):
        train, dev = hold_out(pairs, 0.1, seed)
    texts = [{normalise(text) for text in (*part.text1, *part.text2)} for part in (train, dev)]
    assert not texts[0] & texts[1]
    assert 0.05 * len(pairs) <= len(dev) <= 0.11 * len(pairs)
    lost = len(pairs) - len(train) - len(dev)
    assert 0 < lost < 0.3 * 120  # of the mined pairs alone, and of these a fifth
    assert f"made: {lost} pairs join held-out and training texts; left out" in caplog.text
    assert {kind for kind in dev.supervision} >= {"degrees"}


@pytest.mark.parametrize("supervision", ["grades", None])
@settings(deadline=None)
@given(texts=st.integers(60, 200), each=st.integers(2, 5), seed=st.integers(0, 9))
def test_of_pairs_that_all_hang_together_texts_are_held_out_with_the_pairs_among_them(
    supervision, texts, each, seed
):
    """Every text with its neighbours in a ring, and a tenth of the pairs of any two."""
    generator = np.random.default_rng(seed)
    found = {
        (a, (a + step + 1) % texts) if generator.random() > 0.1 else tuple(generator.choice(texts, 2, False))
        for a in range(texts)
        for step in range(each)
    }
    pairs = pair_set([(f"text {a}", f"Text {b}!") for a, b in sorted(found)])
    pairs = replace(pairs, supervision=supervision and [supervision] * len(pairs))
    train, dev = hold_out(pairs, 0.1, seed)
    parts = [{normalise(text) for text in (*part.text1, *part.text2)} for part in (train, dev)]
    assert not parts[0] & parts[1]
    assert 0.05 * len(pairs) <= len(dev) <= 0.1 * len(pairs) + 2 * each
    assert len(train) + len(dev) >= 0.75 * len(pairs)
    assert dev.sha256() == hold_out(pairs, 0.1, seed)[1].sha256()


def test_human_pairs_are_on_a_scale_of_their_own(rows, tmp_path, caplog):
    caplog.set_level("INFO", logger="angle")
    llm = [row | {"supervision": "degrees"} for row in rows[:40]]
    data, human = write(tmp_path / "llm.jsonl", llm), write(tmp_path / "human.jsonl", rows[40:60])
    for source, names in (
        (data, {"degrees", "human"}),
        (write(tmp_path / "old.jsonl", rows[:40]), {"", "human"}),
    ):
        train = run_data([source], [human], (), ()).train
        assert set(train.supervision) == names
        assert len(set(train.scales())) == 2
        assert "human grades are ranked among themselves and against random pairs" in caplog.text
        caplog.clear()
    assert set(run_data((), [human], (), ()).train.scales()) == {1}
    assert "ranked among themselves" not in caplog.text


def test_hold_out_falls_back_to_single_pairs(caplog):
    # Fewer than half of the pairs wanted are free of the text that all others share.
    pairs = pair_set([("hub", f"b{i}") for i in range(29)] + [("c", "d")])
    train, dev = hold_out(pairs, 0.1, seed=1)
    assert (len(train), len(dev)) == (27, 3)
    assert "pairs are held out one by one" in caplog.text


@settings(deadline=None)
@given(st.integers(16, 100), st.integers(2, 8), st.integers(0, 5))
def test_every_pair_is_in_one_part_and_parts_are_alike(count, parts, seed):
    pairs = single(count)
    found = cut(pairs, parts, seed)
    assert sorted(i for part in found for i in part) == list(range(count))
    sizes = list(map(len, found))
    assert len(found) == min(parts, count // 8)
    assert max(sizes) - min(sizes) <= 1
    # Dealt by score: no part has the low or the high ones alone.
    means = [pairs.score[part].mean() for part in found]
    assert max(means) - min(means) < 1 / min(sizes)


def test_pairs_that_share_a_text_stay_together():
    pairs = pair_set([(f"{chain}-{i}", f"{chain}-{i + 1}") for chain in range(12) for i in range(2)])
    parts = cut(pairs, 4, seed=1)
    texts = [{normalise(t) for i in part for t in (pairs.text1[i], pairs.text2[i])} for part in parts]
    assert sum(map(len, texts)) == len(set().union(*texts))
    assert parts == cut(pairs, 4, seed=1)


def test_pairs_that_all_share_texts_are_dealt_singly(caplog):
    pairs = pair_set([("hub", f"b{i}") for i in range(24)])
    assert sorted(map(len, cut(pairs, 3, seed=1))) == [8, 8, 8]
    assert "too many pairs share texts, so the parts are cut pair by pair" in caplog.text


def test_parts_that_would_be_half_as_large_as_wanted_are_dealt_singly(caplog):
    # 40 pairs in 4 parts of 10: the group of 28 leaves 4 for each of the others.
    pairs = pair_set([("hub", f"b{i}") for i in range(28)] + [(f"c{i}", f"d{i}") for i in range(12)])
    assert sorted(map(len, cut(pairs, 4, seed=1))) == [10, 10, 10, 10]
    assert "the parts are cut pair by pair" in caplog.text


def test_too_few_pairs_are_refused():
    with pytest.raises(InputError, match="made: 5 pairs are too few to choose the number of steps"):
        cut(single(5), 5, seed=0)


def test_files_of_one_name_are_told_apart_within_their_role(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, part in (("a", rows[:15]), ("b", rows[15:30])):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "test.jsonl", part)
    data = load([str(tmp_path / "a" / "test.jsonl")], ["a/test.jsonl"], ["a/test.jsonl", "b/test.jsonl"])
    assert [pairs.name for pairs in data.dev] == ["test"]  # its role tells it from the others
    assert [pairs.name for pairs in data.test] == ["test #1", "test #2"]
    assert {leak.name for leak in run_leaks(data)} == {"test", "test #1", "test #2"}


def test_the_cost_of_labels_is_that_of_all_runs_of_a_data_set(tmp_path):
    (tmp_path / "pairs" / "dataset" / "data").mkdir(parents=True)
    report = tmp_path / "pairs" / "report.json"
    sources = [str(tmp_path / "pairs"), str(tmp_path / "pairs" / "dataset")]
    assert [labels_usd(source) for source in sources] == [0, 0]
    report.write_text('{"runs": [{"usd": 1.25}, {"usd": 0.5}]}')
    assert [labels_usd(source) for source in sources] == [1.75, 1.75]
    report.write_text('{"runs": [{"usd": 1.25}], "scores": {"usd": 0.25}}')
    assert labels_usd(sources[0]) == 1.5
    for unknown in ('{"runs": [{"usd": 1.25}, {}]}', '{"runs": [{"usd": 1.25}], "scores": {"pairs": 3}}'):
        report.write_text(unknown)
        assert labels_usd(sources[0]) == labels_usd("hub:a/b") == labels_usd("pairs.csv") == 0
