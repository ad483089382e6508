"""Models on tasks: intervals, paired differences, seeds as one system, averages, and tasks that fail."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_rel

from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.text import stable_hash
from angle_train.evaluate.bootstrap import bootstrap_interval, draw, paired_bootstrap
from angle_train.evaluate.scores import Judge
from angle_train.evaluate.seeds import System, paired_test, seeds_of, systems_of
from angle_train.evaluate.sources import DataFolder
from angle_train.evaluate.statistics import MeanOf, SpearmanOf
from angle_train.evaluate.suite import run_suite
from angle_train.evaluate.suite_table import suite_table
from angle_train.evaluate.tasks import GROUPS, Outcome

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
    assert old.score == bootstrap_interval(GOLD, COLUMNS["old"], 500, seed)
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


def test_the_paired_test_is_students():
    before, after = [0.5, 0.6, 0.55, 0.58], [0.61, 0.66, 0.6, 0.69]
    found, known = paired_test(before, after), ttest_rel(after, before)
    assert found.p_value == pytest.approx(known.pvalue)
    low, high = known.confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert (found.seeds, found.mean) == (4, pytest.approx(np.mean(np.subtract(after, before))))
    assert paired_test([0.5], [0.6]) is None
    assert paired_test([0.5, 0.6, 0.7], [0.6, 0.7]) is None
    assert paired_test([0.5], [0.75, 0.75]).p_value is None


def test_large_sets_get_fewer_resamples(monkeypatch):
    monkeypatch.setattr("angle_train.evaluate.scores._MOST_CELLS", 60 * 20)
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
    assert found.analyses["stsb"][checkpoint].keys() >= {"density", "saturation", "alignment", "uniformity"}
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
        run_suite([System("x", ("./nowhere",))], ["stsb"], DataFolder(tmp_path))


def test_seeds_are_the_directories_that_match_in_order(tmp_path):
    for name in ("run-seed2", "run-seed1", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "run-seed3").write_text("no directory")
    system = seeds_of(f"{tmp_path}/run-seed*")
    assert system == System("run-seed*", (f"{tmp_path}/run-seed1", f"{tmp_path}/run-seed2"))
    with pytest.raises(InputError, match=r"other\*: 1 directories match; it needs at least two, and quotes"):
        seeds_of(f"{tmp_path}/other*")
    with pytest.raises(InputError, match="0 directories match"):
        seeds_of(f"{tmp_path}/other")


def test_baselines_may_be_models_or_patterns(tmp_path):
    for name in ("a1", "a2", "b/m", "c/m"):
        (tmp_path / name).mkdir(parents=True)
    models = [f"{tmp_path}/b/m", f"{tmp_path}/c/m"]
    systems, base = systems_of(models, [f"{tmp_path}/a?"], f"{tmp_path}/c/m")
    assert [s.name for s in systems] == [*models, "a?"]
    assert base == System(models[1], (models[1],))
    systems, base = systems_of([models[0]], [], f"{tmp_path}/a?")
    assert (systems[0].name, base.name, len(base.members)) == ("m", "a?", 2)
    assert systems_of([models[0]], [], None)[1] is None


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
        "± standard deviation over seeds; p: paired t-test over seeds.",
        "* not of the published size: not comparable with published figures.",
    ]
    assert "±" not in suite_table(scores[:1])
