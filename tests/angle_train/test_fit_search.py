"""`fit --test-search`: a search before and after tuning, in every report, the verdict and the fingerprint."""

import json
import re

import pytest
from train_runs import now, run_of, search_folder, write

from angle_data.errors import InputError
from angle_train import evaluate, fit
from angle_train.inputs import load_data
from angle_train.report.result import FitReport

FAST = {"loss": "papers", "epochs": 6, "batch_size": 16, "learning_rate": 3e-3, "evals_per_epoch": 1}


@pytest.fixture(scope="module")
def searched(tmp_path_factory, rows):
    """Queries that are found by what the training pairs say, among all texts of the demo's graded pairs."""
    root = tmp_path_factory.mktemp("search")
    good = [row for row in rows if row["score"] >= 4]
    return search_folder(root / "notes", good, [row["sentence1"] + " now" for row in rows])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, tiny_model_dir, rows, searched):
    out = tmp_path_factory.mktemp("fitted") / "model"
    learned = now(rows)  # what a model learned shows no gain

    def call(**options):
        return fit(
            learned,
            backbone=tiny_model_dir,
            out=out,
            dev=learned,
            test_search=searched,
            device="cpu",
            **FAST | options,
        )

    return call, call()


def test_the_report_has_the_search_before_and_after(fitted, tiny_model_dir, searched):
    _, result = fitted
    assert result.report.kept == "tuned"
    found = [r for r in result.report.results if r.metric == "ndcg@10"]
    assert [(r.role, r.pairs, r.model) for r in found] == [
        ("test", "notes", name) for name in ("BM25, words", "backbone", "tuned")
    ]
    assert found[2].score.value != found[1].score.value
    # The figures, intervals and difference are those of `eval` on what was saved.
    measured = evaluate(result.path, baseline=tiny_model_dir, search=searched, device="cpu").figures
    for ours, theirs in zip(found[1:], measured[1:3], strict=True):
        assert 100 * ours.score.value == pytest.approx(theirs["score"], abs=1e-9)
        assert 100 * ours.score.low == pytest.approx(theirs["low"], abs=1e-9)
    assert 100 * found[2].difference.delta == pytest.approx(measured[2]["difference"], abs=1e-9)


def test_verdict_card_page_and_file_rest_on_the_search(fitted, searched):
    _, result = fitted
    gain = next(r for r in result.report.results if r.metric == "ndcg@10" and r.model == "tuned")
    assert result.report.judged == [gain]
    assert f"on {gain.count} queries" in result.report.verdict.advice
    card = (result.path / "README.md").read_text()
    assert "ndcg@10" in card
    assert re.search(r"type: information-retrieval", card)
    assert f"Tested on the search: notes, {gain.count} queries." in card
    page = (result.path / "report.html").read_text()
    assert "Query by query: notes" in page
    assert "Most gained and most lost: “tuned” against “backbone”" in page
    assert "--test-search notes" in page
    assert FitReport.read(result.path / "report.json") == result.report
    roles = [
        (note["role"], note["pairs"])
        for note in json.loads((result.path / "report.json").read_text())["data"]
    ]
    assert ("search", gain.count) in roles


def test_training_pairs_that_are_in_the_search_are_said_and_decide_nothing(
    tiny_model_dir, rows, searched, tmp_path
):
    given = {"dev": rows, "test_search": searched, "device": "cpu", **FAST}
    result = fit(rows, backbone=tiny_model_dir, out=tmp_path / "model", **given)
    assert result.report.kept == "backbone"
    assert "hold too many training or dev pairs to show a gain" in result.report.verdict.advice
    (leak,) = [
        found
        for found in result.report.details["leaks"]
        if found["name"] == "notes" and found["origin"] == "training"
    ]
    assert leak["pairs"] == leak["count"] > 0
    assert any("test pairs of notes are training pairs too" in note for note in result.report.notes)


def test_leaks_of_the_search_can_be_left_out(tiny_model_dir, rows, searched, tmp_path):
    from angle_train.options import FitOptions
    from angle_train.recipe import Recipe
    from angle_train.run import load_data

    pairs = write(tmp_path / "pairs.jsonl", rows)
    given = {"data": [pairs], "dev": [pairs], "test_search": [str(searched)], "recipe": Recipe()}
    options = FitOptions(str(tiny_model_dir), tmp_path / "out", **given)
    count = sum(row["score"] >= 4 for row in rows)
    assert len(load_data(options)[0].train) == len(rows)
    others = write(tmp_path / "others.jsonl", [row | {"sentence1": f"{row['sentence1']}?!x"} for row in rows])
    options = FitOptions(str(tiny_model_dir), tmp_path / "out", drop_leaks=True, **given | {"dev": [others]})
    assert len(load_data(options)[0].train) == len(rows) - count


def test_another_search_is_another_run(fitted, searched):
    call, _ = fitted
    assert call().already_finished
    qrels = searched / "qrels/test.tsv"
    before = qrels.read_text()
    try:
        qrels.write_text("\n".join(before.splitlines()[:-1]))
        with pytest.raises(InputError, match="test search notes"):
            call()
    finally:
        qrels.write_text(before)


def test_a_search_that_is_missing_is_said_before_anything_is_loaded(tiny_model_dir, rows, tmp_path):
    with pytest.raises(InputError, match="nowhere does not exist; give a folder with corpus"):
        fit(rows, backbone=tiny_model_dir, out=tmp_path / "out", test_search="nowhere")


def test_texts_that_a_search_asks_for_are_not_kept(tmp_path, tiny_model_dir, rows, searched):
    asked = [json.loads(line)["text"] for line in (searched / "queries.jsonl").read_text().splitlines()]
    others = [f"Text {number}." for number in range(10)]
    keep = write(tmp_path / "keep.jsonl", [{"text": text} for text in [*asked, *others]])
    pairs = write(tmp_path / "pairs.jsonl", now(rows))
    options = run_of(tiny_model_dir, tmp_path / "out", pairs, {}, keep=[keep], test_search=[str(searched)])
    data, _ = load_data(options)
    assert sorted(data.kept.texts) == others
