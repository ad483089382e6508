"""Models on tasks: intervals, paired differences, seeds as one system, averages, and what fails."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.text import stable_hash
from angle_train.evaluate.analysis import analyse
from angle_train.evaluate.bootstrap import draw, interval_around, paired_bootstrap
from angle_train.evaluate.embedding import Embedder, EmbeddingFile
from angle_train.evaluate.scores import Judge
from angle_train.evaluate.seeds import System
from angle_train.evaluate.statistics import MeanOf, SpearmanOf
from angle_train.evaluate.suite import run_suite
from angle_train.evaluate.suite_table import cells, seed_notes, suite_table
from angle_train.evaluate.tasks.registry import GROUPS, Outcome
from angle_train.evaluate.tasks.sources import DataFolder
from angle_train.evaluate.tasks.sts import STS_B, StsTask
from angle_train.model.load import load_backbone

RNG = np.random.default_rng(0)
GOLD = RNG.random(60)
COLUMNS = {name: GOLD + RNG.normal(size=60) * noise for name, noise in [("old", 2), ("s1", 0.3), ("s2", 0.5)]}
OLD, NEW = System("old", ("old",)), System("new*", ("s1", "s2"))


def outcomes(**details):
    return {name: Outcome({"spearman": SpearmanOf(GOLD, c)}, details) for name, c in COLUMNS.items()}


def test_a_single_model_has_the_interval_and_difference_of_its_pairs():
    judge = Judge([OLD, System("one", ("s1",))], OLD, resamples=500)
    old, one = judge.task("stsb", None, outcomes(note="x"))
    seed = stable_hash("stsb") % 2**32
    statistic = SpearmanOf(GOLD, COLUMNS["old"])
    assert old.score == interval_around(statistic.value(), *draw([statistic], 500, seed))
    assert one.difference == paired_bootstrap(GOLD, COLUMNS["old"], COLUMNS["s1"], 500, seed)
    assert (old.baseline, old.difference, one.baseline) == (None, None, "old")
    assert (old.spread, one.seed_test, one.details) == (None, None, {"note": "x"})


def test_seeds_are_averaged_item_by_item_and_tested_seed_by_seed():
    judge = Judge([OLD, NEW], OLD, resamples=400)
    old, new = judge.task("stsb", None, outcomes())
    values = [SpearmanOf(GOLD, COLUMNS[name]).value() for name in ("s1", "s2")]
    assert new.values == values
    assert new.score.value == pytest.approx(np.mean(values))
    assert new.spread == pytest.approx(np.std(values, ddof=1))
    drawn = draw([SpearmanOf(GOLD, COLUMNS[n]) for n in COLUMNS], 400, stable_hash("stsb") % 2**32)
    mean = (drawn[1] + drawn[2]) / 2
    assert new.score.low == pytest.approx(np.percentile(mean, 2.5))
    assert new.difference.high == pytest.approx(np.percentile(mean - drawn[0], 97.5))
    assert new.seed_test.p_value == pytest.approx(ttest_1samp(np.array(values) - old.values[0], 0).pvalue)


def test_large_sets_get_fewer_resamples(monkeypatch):
    monkeypatch.setattr("angle_train.evaluate.bootstrap._MOST_CELLS", 60 * 20)
    monkeypatch.setattr("angle_train.evaluate.bootstrap._FEWEST", 10)
    counts = []
    monkeypatch.setattr(
        "angle_train.evaluate.scores.draw", lambda s, r, seed: counts.append(r) or draw(s, r, seed)
    )
    Judge([OLD], None, resamples=100).task("stsb", None, {"old": outcomes()["old"]})
    assert counts == [20]


def accuracy(share, n):
    return Outcome({"accuracy": MeanOf((np.arange(n) < round(share * n)).astype(float))})


def test_averages_are_given_for_whole_groups_of_standard_size_only():
    sizes = dict(zip(GROUPS["transfer"], range(100, 800, 100), strict=True))

    def judged(names, standard=lambda n: n):
        judge = Judge([System("a", ("a",)), System("b", ("b",))], System("a", ("a",)), resamples=50)
        for position, name in enumerate(names):
            n = sizes[name]
            of = {"a": accuracy(0.5, n), "b": accuracy(0.5 + 0.05 * position, n)}
            judge.task(name, standard(n), of)
        return judge.averages()

    a, b = judged(sizes)
    assert (a.task, a.count, a.score.value) == ("transfer average", 7, pytest.approx(0.5))
    assert b.score.value == pytest.approx(0.65)
    assert b.difference.delta == pytest.approx(0.15)
    assert b.difference.low < 0.15 < b.difference.high
    # Tasks are resampled apart: the average of seven is known better than each of them.
    assert b.score.high - b.score.low < 0.1
    assert judged(list(sizes)[1:]) == []
    assert judged(sizes, standard=lambda n: n + 1) == []
    assert len(judged(sizes, standard=lambda n: None)) == 2


@pytest.fixture
def data_dir(tmp_path):
    def pairs(n):
        return [
            {"text1": f"the node {i} failed", "text2": "x " * (i % 7) + f"node {i}", "score": i % 7}
            for i in range(n)
        ]

    write_jsonl(tmp_path / "stsb" / "test.jsonl", pairs(40))
    write_jsonl(tmp_path / "sick-r" / "test.jsonl", pairs(30))
    return tmp_path


def test_models_run_on_tasks_and_missing_data_stops_only_its_task(data_dir, tiny_model_dir, caplog):
    checkpoint = str(tiny_model_dir.parent / "checkpoint")
    base = System("base", (str(tiny_model_dir),))
    found = run_suite(
        [System("other", (checkpoint,))],
        ["stsb", "sts14", "sick-r"],
        DataFolder(data_dir),
        baseline=base,
        analysis=True,
        cache=data_dir / "cache",
        device="cpu",
        resamples=100,
    )
    assert [(s.task, s.system, s.count, s.standard) for s in found.scores] == [
        ("stsb", "base", 40, False),
        ("stsb", "other", 40, False),
        ("sick-r", "base", 30, False),
        ("sick-r", "other", 30, False),
    ]
    assert list(found.failed) == ["sts14"]
    assert "sts14/test.jsonl.gz does not exist" in found.failed["sts14"]
    assert "stsb: 40 scored items, the published set has 1379" in caplog.text
    assert found.scores[1].difference.delta == pytest.approx(0)  # the same weights
    assert set(found.analyses) == {"stsb", "sick-r"}
    embed, pairs = Embedder(load_backbone(checkpoint, device="cpu"), "x"), STS_B.load(DataFolder(data_dir))
    assert found.analyses["stsb"][checkpoint] == analyse(embed(pairs.text1), embed(pairs.text2), pairs.gold)
    assert len(list((data_dir / "cache").iterdir())) == 2
    row = found.to_dict()["scores"][1]
    assert (row["verdict"], row["baseline"]) == ("no reliable difference", "base")


def test_nothing_is_analysed_or_kept_on_disk_unasked(data_dir, tiny_model_dir):
    system = System("model", (str(tiny_model_dir),))
    found = run_suite([system], ["sick-r"], DataFolder(data_dir), device="cpu", resamples=10)
    assert found.analyses == {}
    assert sorted(path.name for path in data_dir.iterdir()) == ["sick-r", "stsb"]


def test_no_data_at_all_is_an_error_before_any_model_is_loaded(tmp_path):
    with pytest.raises(InputError, match=r"none of the tasks can be measured: .*stsb"):
        run_suite([System("x", ("nobody/nothing",))], ["stsb"], DataFolder(tmp_path))


class Unread(DataFolder):
    """A folder that must not be looked into."""

    def rows(self, data, split):
        raise AssertionError("the data was read")


def test_models_that_are_not_there_are_found_before_any_data_is_read(tiny_model_dir, tmp_path):
    systems = [System("x", (str(tiny_model_dir),)), System("y", ("./nowhere",))]
    with pytest.raises(InputError, match=r"model directory \./nowhere does not exist"):
        run_suite(systems, ["stsb"], Unread(tmp_path))


def test_two_systems_of_one_name_are_not_taken_for_one(tmp_path):
    one, other = System("seed-*", ("a/seed-1", "a/seed-2")), System("seed-*", ("b/seed-1", "b/seed-2"))
    for systems, baseline in (([one, other], None), ([one], other)):
        with pytest.raises(InputError, match=r"two systems are called seed-\*"):
            run_suite(systems, ["stsb"], Unread(tmp_path), baseline=baseline)


def test_the_baseline_may_be_given_twice(data_dir, tiny_model_dir):
    same = System("same", (str(tiny_model_dir),))
    found = run_suite([same], ["sick-r"], DataFolder(data_dir), baseline=same, device="cpu", resamples=10)
    assert [(score.system, score.difference) for score in found.scores] == [("same", None)]


def test_systems_of_the_same_first_model_are_both_looked_at(data_dir, tiny_model_dir):
    model, checkpoint = str(tiny_model_dir), str(tiny_model_dir.parent / "checkpoint")
    systems = [System("one", (model,)), System("both", (model, checkpoint))]
    found = run_suite(
        systems, ["sick-r"], DataFolder(data_dir), device="cpu", views=True, analysis=True, resamples=10
    )
    (view,) = found.views
    assert list(view.similarity) == list(view.embeddings) == ["one", "both"]
    assert list(found.analyses["sick-r"]) == [model, checkpoint]


@pytest.fixture
def damaged(tiny_model_dir, tmp_path):
    copy = shutil.copytree(tiny_model_dir, tmp_path / "damaged")
    (copy / "model.safetensors").write_bytes(b"")
    return str(copy)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_model_that_cannot_be_loaded_does_not_lose_what_others_did(
    data_dir, tiny_model_dir, damaged, caplog, place
):
    systems = [
        System("good", (str(tiny_model_dir),)),
        System("also", (str(tiny_model_dir.parent / "checkpoint"),)),
    ]
    systems.insert(place, System("bad", (str(tiny_model_dir), damaged)))
    found = run_suite(
        systems[1:],
        ["stsb"],
        DataFolder(data_dir),
        baseline=systems[0],
        device="cpu",
        views=True,
        resamples=10,
    )
    assert [score.system for score in found.scores] == ["good", "also"]
    assert found.scores[1].baseline == ("good" if place else None)
    assert list(found.views[0].similarity) == ["good", "also"]
    assert list(found.failed) == [damaged]
    assert f"the weights of {damaged} are damaged" in found.failed[damaged]
    assert caplog.text.count("are damaged") == 1


def test_a_single_model_that_cannot_be_loaded_is_one_error(data_dir, damaged, caplog):
    with pytest.raises(InputError, match=r"^the weights of .* are damaged"):
        run_suite([System("bad", (damaged,))], ["stsb", "sick-r"], DataFolder(data_dir), device="cpu")
    assert caplog.text == ""


@pytest.fixture
def small_fails(monkeypatch):
    """The task of 30 pairs cannot be measured under the model whose name it is given."""
    measure, bad = StsTask.measure, []

    def with_mistake(task, data, encode, settings):
        if len(data.gold) == 30 and encode._name in bad:
            raise InputError("a mistake of the user's")
        return measure(task, data, encode, settings)

    monkeypatch.setattr(StsTask, "measure", with_mistake)
    return bad.append


@pytest.mark.parametrize("numbers", [[0], [1], [0, 1]])
def test_a_task_that_fails_under_one_model_does_not_lose_the_others(
    data_dir, tiny_model_dir, small_fails, caplog, numbers
):
    models = [str(tiny_model_dir), str(tiny_model_dir.parent / "checkpoint")]
    for number in numbers:
        small_fails(models[number])
    found = run_suite(
        [System("a", (models[0],)), System("b", (models[1],))],
        ["sick-r", "stsb"],
        DataFolder(data_dir),
        device="cpu",
        views=True,
        analysis=True,
        resamples=10,
    )
    assert [(score.task, score.system) for score in found.scores] == [("stsb", "a"), ("stsb", "b")]
    assert found.failed == {"sick-r": "a mistake of the user's"}
    assert caplog.text.count("a mistake of the user's") == 1  # no other model is tried on it
    assert list(found.analyses) == [view.name for view in found.views] == ["stsb"]


def test_a_single_task_that_fails_is_one_error(data_dir, tiny_model_dir, small_fails, caplog):
    small_fails(str(tiny_model_dir))
    with pytest.raises(InputError, match=r"^a mistake of the user's$"):
        run_suite([System("a", (str(tiny_model_dir),))], ["sick-r"], DataFolder(data_dir), device="cpu")
    assert caplog.text == ""


@pytest.mark.parametrize("rows", [1, 20])
def test_gold_scores_that_cannot_be_ranked_are_said_before_anything_is_measured(
    data_dir, tiny_model_dir, rows
):
    flat = [{"text1": f"a{i}", "text2": f"b{i}", "score": 2.5} for i in range(rows)]
    write_jsonl(data_dir / "sts12" / "test.jsonl", flat)
    reason = f"all {rows} scores are 2.5; "
    found = run_suite(
        [System("a", (str(tiny_model_dir),))],
        ["sts12", "stsb"],
        DataFolder(data_dir),
        device="cpu",
        resamples=10,
    )
    assert [name for name in found.failed if reason in found.failed[name]] == ["sts12"]
    with pytest.raises(InputError, match=reason):
        run_suite([System("x", ("nobody/nothing",))], ["sts12"], DataFolder(data_dir))


def test_embeddings_on_disk_are_closed_after_each_model(data_dir, tiny_model_dir, monkeypatch):
    closed = []
    close = EmbeddingFile.close
    monkeypatch.setattr(EmbeddingFile, "close", lambda file: closed.append(file) or close(file))
    systems = [System("a", (str(tiny_model_dir), str(tiny_model_dir.parent / "checkpoint")))]
    run_suite(systems, ["sick-r"], DataFolder(data_dir), cache=data_dir / "cache", device="cpu", resamples=10)
    assert len(closed) == 2


def test_the_table_has_a_line_for_every_figure_with_notes_on_what_it_is():
    judge = Judge([OLD, NEW], OLD, resamples=100)
    scores = judge.task("stsb", 1379, outcomes())
    lines = suite_table(scores).splitlines()
    assert lines[0].split()[:5] == ["task", "n", "figure", "model", "x"]
    assert lines[2].split()[:4] == ["stsb*", "60", "spearman", "old"]
    assert f"{100 * scores[1].score.value:.1f} ± {100 * scores[1].spread:.1f}" in lines[3]
    assert f"{100 * scores[1].difference.delta:+.1f}" in lines[3]
    assert f"p = {scores[1].seed_test.p_value:.3g}" in lines[3]
    assert lines[4:] == [
        "95 % bootstrap intervals over items; differences to old, paired.",
        "± standard deviation over seeds.",
        "p: over seeds, paired t-test. Better, worse: over items and over seeds, each at 95 %.",
        "* not of the published size: not comparable with published figures.",
    ]
    assert "±" not in suite_table(scores[:1])


def judged(values, before=(0.5,), n=400):
    """A system of seeds against another, by accuracies on the same items."""
    old = System("old", tuple(f"o{i}" for i in range(len(before))), tuple(map(str, range(len(before)))))
    new = System("new", tuple(f"n{i}" for i in range(len(values))), tuple(map(str, range(len(values)))))
    of = dict(zip((*old.members, *new.members), (accuracy(v, n) for v in (*before, *values)), strict=True))
    _, score = Judge([old, new], old, resamples=300).task("cr", None, of)
    return score


@pytest.mark.parametrize(
    ("values", "before", "agree", "verdict", "cell"),
    [
        ((0.7, 0.72, 0.71), (0.5,), True, "better", "better, p = "),
        ((0.7, 0.72, 0.71), (0.5, 0.51, 0.5), True, "better", "better, p = "),
        ((0.51, 0.9), (0.5,), False, "no reliable difference", "no reliable difference over seeds, p = "),
        ((0.9, 0.9), (0.51, 0.89), False, "no reliable difference", "no reliable difference over seeds, p"),
        ((0.1, 0.49), (0.5,), False, "no reliable difference", "no reliable difference over seeds, p = "),
        ((0.3, 0.32, 0.31), (0.5,), True, "worse", "worse, p = "),
        ((0.7,), (0.5, 0.6), False, "no reliable difference", "no reliable difference over seeds, p = "),
        ((0.505, 0.4975), (0.5,), False, "no reliable difference", "no reliable difference, p = "),
        ((0.7,), (0.5,), None, "better", "better"),
    ],
)
def test_what_seeds_do_not_support_is_not_called_better(values, before, agree, verdict, cell):
    score = judged(values, before)
    assert score.difference.seeds_agree is agree
    assert score.to_dict()["verdict"] == score.difference.verdict == verdict
    assert cells(score)[-1].startswith(cell)
    assert (", p = " in cells(score)[-1]) == (len(values) + len(before) > 2)


def test_the_table_says_how_seeds_are_judged():
    score = judged((0.7, 0.72, 0.71), (0.5, 0.52))
    paired, single = judged((0.7, 0.72)), judged((0.7,))
    rule = "Better, worse: over items and over seeds, each at 95 %."
    welch = "Welch's t-test, as the seeds are not the same"
    assert seed_notes([score]) == ["± standard deviation over seeds.", f"p: over seeds, {welch}. {rule}"]
    assert seed_notes([score, paired])[1] == f"p: over seeds, paired t-test; {welch}. {rule}"
    assert seed_notes([single]) == []
    assert seed_notes([replace(paired, seed_test=None)]) == ["± standard deviation over seeds."]
