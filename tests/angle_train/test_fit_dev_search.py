"""`fit --dev-search`: a search chooses the weights, alone or beside dev pairs, and every report says so."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from cut_runs import CutOff, cut_off
from sentence_transformers import SentenceTransformer
from train_runs import now, run_of, search_folder, tuned_weights, weights, write

from angle_data.errors import InputError
from angle_train import evaluate, fit
from angle_train.inputs import load_data
from angle_train.options import FitOptions
from angle_train.recipe import Recipe
from angle_train.run import fit as run

FAST = {"loss": "papers", "epochs": 4, "batch_size": 16, "learning_rate": 3e-3, "evals_per_epoch": 1}


def good(rows):
    """The rows whose first text should find the second."""
    return [row for row in rows if row["score"] >= 4]


@pytest.fixture(scope="module")
def searched(tmp_path_factory, rows):
    """Queries that are found by what the training pairs say, among all texts of the demo's graded pairs."""
    root = tmp_path_factory.mktemp("dev-search")
    return search_folder(root / "mine", good(rows), [f"{row['sentence1']} now" for row in rows], "dev")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, tiny_model_dir, rows, searched):
    out = tmp_path_factory.mktemp("fitted") / "model"

    def call(**options):
        given = {"dev_search": searched, "device": "cpu", "out": out, "backbone": tiny_model_dir, **FAST}
        return fit(now(rows), **given | options)

    return call, call()


def ndcg(model, searched, **options):
    """The mean nDCG@10 of a model, as `eval` gives it."""
    figures = evaluate(model, search=searched, device="cpu", **options).figures
    return next(row["score"] for row in figures if row["metric"] == "ndcg@10" and "BM25" not in row["model"])


def test_without_dev_pairs_the_search_chooses_alone(fitted, rows, searched, tiny_model_dir):
    _, result = fitted
    report = result.report
    roles = {note.role: note.pairs for note in report.data}
    assert roles["train"] == len(rows)  # none is held out
    assert roles["dev search"] == len(good(rows))
    assert "dev" not in roles
    before, after = 100 * report.dev_before, 100 * report.dev_after
    assert before == pytest.approx(ndcg(tiny_model_dir, searched, split="dev"), abs=1e-9)
    assert after == pytest.approx(ndcg(tuned_weights(result.path), searched, split="dev"), abs=1e-9)
    at = {point["step"]: point["dev"] for point in report.curve}
    assert (at[0], at[report.best_step]) == pytest.approx((report.dev_before, report.dev_after))
    choice = report.details["choice"]
    assert (choice["simplest"], choice["best"]) == pytest.approx((report.dev_before, report.dev_after))
    assert choice["compared"] == 4


def test_reports_say_that_queries_chose(fitted, rows):
    _, result = fitted
    report, count = result.report, len(good(rows))
    found = [(r.role, r.pairs, r.model) for r in report.results if r.metric == "ndcg@10"]
    assert found == [("dev", "mine", name) for name in ("BM25, words", "backbone", report.tuned_name)]
    assert report.kept == "tuned"
    verdict = report.verdict
    assert verdict.advice.startswith("Better on the dev queries, which chose it (")
    assert "these queries also chose the checkpoint, so the gain is flattered; give --test-search" in (
        verdict.lines
    )
    assert f"Chosen on the search: mine, {count} queries." in (result.path / "README.md").read_text()
    page = (result.path / "report.html").read_text()
    assert "Chosen on dev queries" in page
    assert "The mean nDCG@10 of the queries that choose the weights" in page
    assert "dev nDCG@10 × 100" in page
    assert "Query by query: mine" in page
    assert "--dev-search mine" in page


def test_another_dev_search_is_another_run(fitted, searched):
    call, _ = fitted
    assert call().already_finished
    qrels = searched / "qrels/dev.tsv"
    before = qrels.read_text()
    try:
        qrels.write_text("\n".join(before.splitlines()[:-1]))
        with pytest.raises(InputError, match="dev search mine"):
            call()
    finally:
        qrels.write_text(before)


def test_beside_dev_pairs_the_mean_of_both_figures_chooses(tiny_model_dir, rows, searched, tmp_path, caplog):
    pairs, dev = write(tmp_path / "pairs.jsonl", now(rows)), write(tmp_path / "dev.jsonl", rows)
    values = FAST | {"epochs": 1}
    both = run_of(tiny_model_dir, tmp_path / "out", pairs, values, dev=[dev], dev_search=[str(searched)])
    with caplog.at_level("INFO", logger="angle"):
        report = run(both).report
    first = {(r.pairs, r.model): r.score.value for r in report.results if r.main}
    wanted = (first["dev", "backbone"] + first["mine", "backbone"]) / 2
    assert report.dev_before == pytest.approx(wanted, abs=1e-9)
    said = f"step 0, the untouched backbone: dev mean of Spearman and nDCG@10 {100 * wanted:.2f}"
    assert said in caplog.text
    assert "on the dev pairs and queries, the backbone's" in caplog.text
    assert "; nDCG@10 of the dev queries " in caplog.text  # the line of each evaluation
    assert "Better on the dev pairs and queries, which chose it (" in report.verdict.advice


def test_queries_and_documents_are_read_in_their_roles(tiny_model_dir, rows, searched, tmp_path):
    prompts = {"query_prompt": "how to ", "document_prompt": "note that "}
    result = fit(
        now(rows), backbone=tiny_model_dir, out=tmp_path / "out", dev_search=searched, device="cpu",
        **FAST | prompts | {"epochs": 1},
    )  # fmt: skip
    with_prompts = ndcg(tiny_model_dir, searched, **prompts)
    assert 100 * result.report.dev_before == pytest.approx(with_prompts, abs=1e-9)
    assert with_prompts != pytest.approx(ndcg(tiny_model_dir, searched), abs=1e-3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_model_dir, rows, searched):
    """A run that nothing cut off: 2 evaluations, at steps 7 and 14."""
    folder = tmp_path_factory.mktemp("whole")
    pairs, values = write(folder / "pairs.jsonl", now(rows)), FAST | {"epochs": 2}
    options = run_of(tiny_model_dir, folder / "out", pairs, values, dev=None, dev_search=[str(searched)])
    return options, run(options).report


@pytest.mark.parametrize("step", [9, 14])  # after an evaluation, after the last one
def test_a_run_that_was_cut_off_goes_on_to_the_same_end(whole, tmp_path, step):
    options, report = whole
    cut = replace(options, out=tmp_path / "cut")
    with cut_off("on_step_end" if step < report.steps else "on_save", step), pytest.raises(CutOff):
        run(cut)
    assert run(cut).report == report
    assert weights(cut.out) == weights(options.out)


def test_no_text_is_embedded_twice_under_the_same_weights(
    monkeypatch, tiny_model_dir, rows, searched, tmp_path
):
    found, encode = Counter(), SentenceTransformer.encode

    def counted(self, texts, **options):
        state = float(sum(value.detach().double().sum() for value in self.parameters()))
        found.update((state, str(options.get("prompt")), text) for text in texts)
        return encode(self, texts, **options)

    monkeypatch.setattr(SentenceTransformer, "encode", counted)
    pairs = write(tmp_path / "pairs.jsonl", [row | {"sentence1": f"{row['sentence1']} x"} for row in rows])
    options = run_of(
        tiny_model_dir, tmp_path / "out", pairs, FAST | {"epochs": 2}, dev=None, dev_search=[str(searched)]
    )
    run(options)
    asked = {json.loads(line)["text"] for line in (searched / "corpus.jsonl").read_text().splitlines()}
    times = {key: count for key, count in found.items() if key[2] in asked}
    assert set(times.values()) == {1}
    assert len({state for state, _, _ in times}) == 3  # the backbone, and the weights after two epochs


def options_of(tmp_path, model, rows, **more):
    pairs = write(tmp_path / "pairs.jsonl", rows)
    given = {"data": [pairs], "recipe": Recipe()} | more
    return FitOptions(str(model), tmp_path / "out", **given)


def test_training_pairs_that_the_dev_search_asks_for_are_said_and_can_be_left_out(
    tiny_model_dir, rows, searched, tmp_path, caplog
):
    given = {"dev_search": [str(searched)]}
    data, _ = load_data(options_of(tmp_path, tiny_model_dir, rows, **given))
    assert len(data.train) == len(rows)
    from angle_train.data.splits import run_leaks

    leak = next(found for found in run_leaks(data) if (found.role, found.name) == ("dev", "mine"))
    assert leak.pairs == leak.count == len(good(rows))
    assert "dev pairs of mine are training pairs too" in caplog.text
    data, _ = load_data(options_of(tmp_path, tiny_model_dir, rows, drop_leaks=True, **given))
    assert len(data.train) == len(rows) - len(good(rows))


def test_a_test_search_that_also_chose_shows_no_gain(fitted, tmp_path, searched):
    call, _ = fitted
    result = call(out=tmp_path / "model", test_search=searched)
    assert result.report.kept == "backbone"
    assert "hold too many training or dev pairs to show a gain" in result.report.verdict.advice
    leak = next(
        found
        for found in result.report.details["leaks"]
        if (found["role"], found["origin"]) == ("test", "dev")
    )
    assert leak["pairs"] == leak["count"] > 0


def test_pairs_that_the_dev_search_asks_for_are_no_guard(tiny_model_dir, rows, searched, tmp_path, caplog):
    guard = write(tmp_path / "guard.jsonl", rows)
    options = options_of(tmp_path, tiny_model_dir, now(rows), dev_search=[str(searched)], guard=[guard])
    data, _ = load_data(options)
    assert len(data.guards[0].pairs) == len(rows) - len(good(rows))
    assert "left out: they train or choose the weights" in caplog.text


def test_graded_pairs_all_train_where_a_search_chooses(tiny_model_dir, rows, searched, tmp_path):
    options = options_of(tmp_path, tiny_model_dir, now(rows), dev_search=[str(searched)])
    data, _ = load_data(replace(options, data=None, human=options.data))
    assert [one.name for one in data.choosing] == ["mine"]
    assert len(data.train) == len(rows)


def test_a_dev_search_that_is_missing_is_said_at_once(tiny_model_dir, rows, tmp_path):
    with pytest.raises(InputError, match="nowhere does not exist; give a folder with corpus"):
        fit(rows, backbone=tiny_model_dir, out=tmp_path / "out", dev_search="nowhere")
