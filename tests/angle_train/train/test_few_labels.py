"""Few human-graded pairs, beside others and as their own dev set; what else is chosen or dropped by pairs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cut_runs import CutOff, cut_off

from angle_data.errors import InputError
from angle_train import fit as fit_module
from angle_train.data.kinds import settle
from angle_train.data.pairs import load_pairs
from angle_train.data.splits import load_run_data, run_leaks
from angle_train.evaluate.similarity import evaluate_model, spearman
from angle_train.fit import FitConfig, fit
from angle_train.model.load import load_backbone
from angle_train.recipe import Recipe
from angle_train.train import choosing as crossfit
from angle_train.train import trainer

SHORT = {
    "loss": "papers",
    "epochs": 2,
    "batch_size": 16,
    "learning_rate": 2e-3,
    "evals_per_epoch": 1,
    "folds": 2,
}


@pytest.fixture(scope="module", autouse=True)
def _no_figures():
    """Leave out the HTML report, whose figures take longer than the training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "write_fit_page", lambda *given: None)
        yield


@pytest.fixture(scope="module")
def rows(examples):
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row.pop("split") == "dev"]


def write(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.fixture(scope="module")
def config(rows, tiny_model_dir, tmp_path_factory):
    """40 pairs and 24 human-graded ones, 8 of which are among the 40; 16 test pairs.

    Of the other 16 the machine has a paraphrase, so that training on its pairs helps on them.
    """
    folder = tmp_path_factory.mktemp("few")
    alike = [row | {"sentence1": f"{row['sentence1']} now"} for row in rows[40:56]]
    return FitConfig(
        data=[write(folder / "machine.jsonl", [*rows[16:40], *alike])],
        human=[write(folder / "human.jsonl", rows[32:56])],
        test=[write(folder / "test.jsonl", rows[60:76])],
        backbone=str(tiny_model_dir),
        out=folder / "out",
        recipe=Recipe().with_overrides(SHORT | {"average_with_backbone": "auto"}),
        device="cpu",
    )


@pytest.fixture(scope="module")
def result(config):
    return fit(config)


def changed(config, **values):
    return replace(config, recipe=config.recipe.with_overrides(values))


def weights(directory):
    return (directory / "model.safetensors").read_bytes()


def test_human_pairs_choose_the_number_of_steps_in_turn(config, result):
    report, folds = result.report, result.report.details["folds"]
    assert folds["sizes"] == [12, 12]
    assert folds["evaluation"] > 0
    assert report.dev_before == folds["backbone"]
    assert report.dev_after == folds["mean"] == pytest.approx(np.mean(folds["scores"]))
    assert report.dev_after == folds["means"][folds["evaluation"] - 1] > report.dev_before
    assert [point["dev"] for point in report.curve] == [folds["backbone"], *folds["means"]]
    # 32 + 24 pairs are 4 batches.
    assert [point["step"] for point in report.curve] == [0, 4, 8]
    assert report.planned_steps == 8
    assert report.steps == report.best_step == 4 * folds["evaluation"]
    assert [(note.role, note.pairs) for note in report.data] == [("train", 56), ("human", 24), ("test", 16)]
    assert report.details["dropped"] == {"graded by humans": 8}
    assert [(r.role, r.pairs, r.count) for r in report.results[::3]] == [
        ("dev", "human/held out in turn", 24),
        ("test", "test", 16),
    ]
    assert not (config.out / "folds").exists()
    card = (config.out / "README.md").read_text()
    assert report.advice() in card
    assert "dev_spearman" not in card  # the parts measured other models


@pytest.mark.parametrize(("evaluation", "steps"), [(2, 8), (3, 12)])
def test_all_pairs_are_trained_on_for_as_large_a_share_as_the_parts_were(
    config, tmp_path, monkeypatch, evaluation, steps
):
    """A part of 12 pairs is 6 steps, measured after 2, 4 and 6; all 24 would be after 3, 6, 9 and 12."""
    original = crossfit.choose
    monkeypatch.setattr(
        crossfit, "choose", lambda curves: replace(original(curves), evaluation=evaluation, share=0)
    )
    values = {"batch_size": 4, "evals_per_epoch": 2}
    report = fit(replace(changed(config, **values), data=[], out=tmp_path / "out")).report
    assert report.details["folds"]["sizes"] == [12, 12]
    assert report.details["folds"]["progress"] == pytest.approx([1 / 3, 2 / 3, 1])
    assert [point["step"] for point in report.curve] == [0, 4, 8, 12]
    assert (report.steps, report.best_step, report.planned_steps) == (steps, steps, 12)


def test_every_human_pair_is_measured_by_a_run_that_did_not_train_on_it(
    config, result, tmp_path, monkeypatch
):
    trained, parts = [], []
    original = trainer.train

    def watch(model, pairs, *given, evaluator=None, **options):
        trained.append(set(zip(pairs.text1, pairs.text2, strict=True)))
        dev = [evaluator.part] if evaluator else []
        parts.append([set(zip(p.text1, p.text2, strict=True)) for p in dev])
        return original(model, pairs, *given, evaluator=evaluator, **options)

    monkeypatch.setattr("angle_train.train.choosing.train", watch)
    monkeypatch.setattr(fit_module, "train", watch)
    fit(replace(config, out=tmp_path / "out"))
    human = load_pairs(config.human[0])
    everything = set(zip(human.text1, human.text2, strict=True))
    (first,), (second,), rest = parts
    assert (first | second, first & second, rest) == (everything, set(), [])
    assert not trained[0] & first
    assert not trained[1] & second
    assert trained[0] >= second
    assert trained[2] >= everything
    assert weights(tmp_path / "out") == weights(config.out)


# A part is 3 steps an epoch, all pairs are 4.
@pytest.mark.parametrize(("folder", "step"), [("folds/part-2", 3), ("", 4)])
def test_a_run_killed_in_a_part_or_after_them_goes_on(config, result, tmp_path, folder, step):
    run = replace(config, out=tmp_path / "out")
    with cut_off("on_save", step, folder=folder), pytest.raises(CutOff):
        fit(run)
    for change in ({"human": [config.test[0]]}, {"recipe": config.recipe.with_overrides({"seed": 1})}):
        with pytest.raises(InputError, match="holds a run with different"):
            fit(replace(run, **change))
    fit(run)
    for name in ("model.safetensors", "report.json"):
        assert (run.out / name).read_bytes() == (config.out / name).read_bytes(), name


def test_a_run_killed_where_it_was_to_stop_takes_no_step_more(config, tmp_path, monkeypatch):
    original = crossfit.choose
    first = {"evaluation": 1, "share": 0}
    monkeypatch.setattr(crossfit, "choose", lambda curves: replace(original(curves), **first))
    report = fit(replace(config, out=tmp_path / "whole")).report
    assert (report.steps, report.planned_steps) == (4, 8)
    run = replace(config, out=tmp_path / "cut")
    with cut_off("on_save", 4), pytest.raises(CutOff):
        fit(run)
    assert (run.out / "checkpoints" / "checkpoint-4").is_dir()
    fit(run)
    for name in ("model.safetensors", "report.json"):
        assert (run.out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_with_dev_pairs_human_pairs_train_along_with_their_weight(config, rows, tmp_path):
    dev = write(tmp_path / "dev.jsonl", rows[76:])
    given = replace(changed(config, average_with_backbone=0.0, epochs=1), dev=[dev], out=tmp_path / "one")
    report = fit(given).report
    assert [(note.role, note.pairs) for note in report.data][:2] == [("train", 56), ("human", 24)]
    assert "folds" not in report.details
    heavier = replace(changed(given, human_weight=5.0), out=tmp_path / "five")
    assert fit(heavier).report.data[1].sha256 != report.data[1].sha256
    assert weights(heavier.out) != weights(given.out)
    data = load_run_data(given.data, given.human, given.dev, (), recipe=heavier.recipe)
    assert sorted(set(data.train.weight.tolist())) == [1.0, 5.0]


def test_human_pairs_alone_are_enough(config, tmp_path):
    run = replace(changed(config, epochs=1, average_with_backbone=0.0), data=(), out=tmp_path / "out")
    report = fit(run).report
    assert [(note.role, note.pairs) for note in report.data][:2] == [("train", 24), ("human", 24)]
    few = tmp_path / "few.jsonl"
    with open(config.human[0]) as stream:
        few.write_text("".join(stream.readlines()[:5]))
    with pytest.raises(InputError, match="pairs are too few to choose the number of steps on"):
        fit(replace(run, human=[str(few)], out=tmp_path / "few"))


def test_the_share_of_the_backbone_is_chosen_on_dev(config, rows, tmp_path):
    dev = write(tmp_path / "dev.jsonl", rows[:30])
    run = replace(changed(config, learning_rate=0.02), human=(), dev=[dev], out=tmp_path / "out")
    report = fit(run).report
    merge = report.details["merge"]
    assert len(merge["dev"]) == 10
    assert merge["dev"][0] == max(point["dev"] for point in report.curve[1:])
    assert report.dev_after == max(merge["dev"])
    assert merge["share"] == merge["shares"][merge["dev"].index(max(merge["dev"]))]
    pairs = load_pairs(dev)
    saved = load_backbone(str(run.out), device="cpu")
    assert spearman(pairs.score, evaluate_model(saved, pairs)) == pytest.approx(report.dev_after)
    fixed = replace(changed(run, average_with_backbone=0.4), out=tmp_path / "fixed")
    assert fit(fixed).report.details["merge"] == {"share": 0.4, "shares": [0.4], "dev": []}
    assert fit(fixed).report.dev_after == pytest.approx(merge["dev"][4], abs=1e-6)


def test_parts_that_share_texts_and_texts_of_the_other_pairs_are_told(config, rows, tmp_path):
    hub = [row | {"sentence1": rows[0]["sentence1"]} for row in rows[:12]]
    short = changed(config, epochs=1, average_with_backbone=0.0)
    run = replace(short, human=[write(tmp_path / "hub.jsonl", hub)], out=tmp_path / "out")
    report = fit(run).report
    note = "of the human-graded pairs are in several of the parts that were held out in turn"
    (found,) = [told for told in report.notes if note in told]
    texts, total = report.details["folds"]["shared_texts"]
    assert found.startswith(f"{texts} of the {total} texts ")
    assert texts >= 1


def test_parts_are_compared_with_the_pairs_that_all_of_them_train_on(config, result):
    report = result.report
    assert report.details["folds"]["shared_texts"][0] == 0
    assert not [note for note in report.notes if "held out in turn" in note]
    first = report.details["leaks"][0]
    # Of the 24 human-graded pairs 8 are machine pairs too, which are left out; 16 share their second text.
    assert (first["role"], first["name"], first["count"], first["pairs"]) == ("dev", "human", 24, 0)
    assert 0.2 < first["texts"] < 0.6


@pytest.mark.parametrize("settings", [{}, {"cosine_weight": 0.0}])
def test_positive_pairs_alone_train_what_learns_from_the_batch(config, rows, tmp_path, settings):
    columns = [{"anchor": row["sentence1"], "positive": row["sentence2"]} for row in rows[:24]]
    data = write(tmp_path / "positives.jsonl", columns)
    run = replace(changed(config, epochs=1, **settings), data=[data], human=(), dev=config.test, test=())
    report = fit(replace(run, out=tmp_path / "out")).report
    assert report.curve[1]["terms"]["loss"] > 0
    assert report.data[0].pairs == 24
    ranks = "batches had equal scores throughout and taught no ranking"
    assert any(note.endswith(ranks) for note in report.notes)
    with pytest.raises(InputError, match="pairs of one score cannot choose the weights; give --dev pairs"):
        fit(replace(run, dev=(), out=tmp_path / "none"))


def test_positive_pairs_alone_are_refused_where_they_teach_nothing(config, rows, tmp_path):
    data = write(tmp_path / "ones.jsonl", [row | {"score": 1} for row in rows[:12]])
    run = replace(changed(config, in_batch_weight=0.0), data=[data], human=(), dev=config.test)
    with pytest.raises(InputError, match=r"ones: all 12 training pairs have score 1 .* set in_batch_weight"):
        fit(run)
    zeros = write(tmp_path / "zeros.jsonl", [row | {"score": 0} for row in rows[12:24]])
    data = load_run_data([data, zeros], (), run.dev, (), recipe=run.recipe)  # together they rank
    assert len(data.train) == 24


def test_the_length_follows_from_the_data(config, rows, tmp_path, caplog):
    long = [rows[0] | {"sentence1": "the node failed again and again " * 6}, *rows[1:40]]
    data = write(tmp_path / "data.jsonl", long)
    run = replace(changed(config, epochs=1, max_seq_length="auto"), data=[data], human=(), dev=config.test)
    with caplog.at_level("INFO", logger="angle"):
        report = fit(replace(run, out=tmp_path / "out")).report
    lengths = report.details["lengths"]
    assert lengths["max_seq_length"] < 64 == load_backbone(run.backbone, device="cpu").max_seq_length
    assert load_backbone(str(tmp_path / "out"), device="cpu").max_seq_length == (
        lengths["max_seq_length"] if report.kept == "tuned" else 64
    )
    assert report.recipe["training"]["max_seq_length"] == "auto"
    assert Recipe.from_toml(tmp_path / "out" / "recipe.toml") == settle(run.recipe, load_pairs(data))
    assert f"max_seq_length {lengths['max_seq_length']}: the longest training text has" in caplog.text
    cut = replace(changed(run, max_seq_length=4), out=tmp_path / "cut")
    with caplog.at_level("INFO", logger="angle"):
        assert fit(cut).report.details["lengths"]["truncated"] > 0.5
    assert "longer and are cut; there are positions for --max-seq-length 64, and --set long" in caplog.text
    caplog.clear()
    longer = write(tmp_path / "longer.jsonl", [rows[0] | {"sentence1": "the node failed " * 40}, *long])
    whole = replace(changed(run, max_seq_length=None), data=[longer], out=tmp_path / "whole")
    with caplog.at_level("INFO", logger="angle"):
        assert fit(whole).report.details["lengths"]["truncated"] > 0
    assert "% of the training texts are longer and are cut; --set long_text=head_tail reads" in caplog.text


def test_leaks_are_found_and_can_be_dropped(config, rows, tmp_path):
    half = [row | {"sentence2": "another text"} for row in rows[24:26]]
    dev = write(tmp_path / "dev.jsonl", [*rows[16:24], *half, *rows[76:86]])
    leak, *_ = run_leaks(load_run_data(config.data, (), [dev], (), recipe=config.recipe))
    assert (leak.role, leak.pairs, leak.count) == ("dev", 8, 20)
    assert 0.4 < leak.texts < 0.6
    without = load_run_data(config.data, (), [dev], (), recipe=config.recipe, drop_leaks=True)
    assert without.dropped == {"leaks": 8}
    assert len(without.train) == 32
    leak, *_ = run_leaks(without)
    assert leak.pairs == 0
    assert leak.texts > 0
    with pytest.raises(InputError, match="no training pairs are left"):
        load_run_data(config.data, (), config.data, (), recipe=config.recipe, drop_leaks=True)


def test_near_copies_scored_as_dissimilar_are_left_out_of_training(config, rows, tmp_path):
    flat = [row | {"sentence2": row["sentence1"] + " not", "score": 0} for row in rows[:4]]
    data = write(tmp_path / "data.jsonl", [*rows[8:30], *flat])
    recipe = changed(config, skip_near_copies=True).recipe
    found = load_run_data([data], (), config.test, (), recipe=recipe)
    zeros = [row for row in rows[8:30] if row["score"] == 0]
    assert found.dropped["near copies"] >= 4
    assert len(found.train) >= 22 - len(zeros)
