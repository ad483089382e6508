"""`angle-train eval` on a search: table, JSON and page hold the same numbers; mistakes are one line."""

import json

import pytest

from angle_train import evaluate


@pytest.fixture
def run(program):
    """Run `angle-train eval` with the given options; returns exit code, stdout and stderr."""
    return lambda *arguments: program("eval", *arguments)


@pytest.fixture
def folder(tmp_path, examples):
    """The demo's texts as documents, and the other texts of its graded pairs as queries."""
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    pairs = [row for row in map(json.loads, lines) if row["score"] >= 3][:40]
    texts = list(dict.fromkeys(row["sentence2"] for row in pairs))
    root = tmp_path / "demo"
    (root / "qrels").mkdir(parents=True)
    corpus = ({"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts))
    (root / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    queries = ({"_id": f"q{at}", "text": row["sentence1"]} for at, row in enumerate(pairs))
    (root / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    graded = (f"q{at}\td{texts.index(row['sentence2'])}\t{row['score']}\n" for at, row in enumerate(pairs))
    (root / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(graded))
    return root


@pytest.fixture
def other(tiny_model, tmp_path):
    """A model with other weights."""
    import torch

    torch.manual_seed(3)
    for weights in tiny_model.parameters():
        weights.data += 0.05 * torch.randn_like(weights)
    tiny_model.save_pretrained(str(tmp_path / "other"), create_model_card=False)
    return tmp_path / "other"


def test_table_json_and_page_hold_the_same_numbers(run, tiny_model_dir, other, folder):
    page = folder / "page.html"
    common = ["--model", other, "--baseline", tiny_model_dir, "--search", folder]
    code, table, err = run(*common, "--report", page)
    assert code == 0, err
    lines = table.splitlines()
    assert [line.split("  ")[0] for line in lines[2:14]] == ["demo"] * 12
    assert "95 % bootstrap intervals over queries; differences to model, paired." in table
    code, out, _ = run(*common, "--json", "--quiet")
    results = json.loads(out)["results"]
    assert [r["metric"] for r in results] == [
        name for name in ("ndcg@10", "mrr@10", "recall@10", "recall@100") for _ in range(3)
    ]
    assert [r["model"] for r in results[:3]] == ["BM25, words", "model", "other"]
    assert {r["count"] for r in results} == {40}
    assert "difference" in results[2]
    assert results[0]["difference"] is None  # words are compared with no model
    assert "main" not in results[0]
    html = page.read_text()
    for result in results:
        shown = f"{100 * result['score']['value']:.1f}"
        assert shown in table
        assert f">{shown}<" in html
    assert "<h2>Query by query: demo</h2>" in html
    assert "Most gained and most lost: “other” against “model”" in html
    assert "relevant: rank " in html
    assert "not relevant: rank 1" in html
    assert "intervals over queries" in html
    assert "on 40 queries" in html


def test_a_page_without_a_baseline_shows_the_worst_queries(run, tiny_model_dir, folder):
    page = folder / "page.html"
    assert run("--model", tiny_model_dir, "--search", folder, "--report", page)[0] == 0
    assert "The worst results of “model”" in page.read_text()
    assert "The worst results of “BM25" not in page.read_text()


def test_three_files_are_the_same_search_as_their_folder(tiny_model_dir, folder):
    whole = evaluate(tiny_model_dir, search=folder, device="cpu")
    parts = evaluate(
        tiny_model_dir,
        corpus=folder / "corpus.jsonl",
        queries=folder / "queries.jsonl",
        qrels=folder / "qrels/test.tsv",
        device="cpu",
    )
    figures = [[row["score"] for row in found.figures] for found in (whole, parts)]
    assert figures[0] == figures[1]
    assert 0 < figures[0][1] < 100  # of the model, whose weights are random


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--search FOLDER --pairs x.jsonl", "give either --pairs FILE, or --search FOLDER, or --task NAME"),
        ("--corpus FOLDER/corpus.jsonl", "--corpus needs --queries and --qrels too, or give --search FOLDER"),
        ("--search FOLDER --scale 0-5", "--scale goes with --pairs only; leave it out"),
        ("--search FOLDER --split nope", "has no nope.tsv; found: test; choose with --split"),
        ("--search FOLDER --data-dir .", "--data-dir goes with --task only; leave it out"),
        ("--search nowhere", "nowhere does not exist; give a folder with corpus.jsonl"),
        (
            "--corpus FOLDER/none.jsonl --queries FOLDER/queries.jsonl --qrels FOLDER/qrels/test.tsv",
            "none.jsonl does not exist; check the path",
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_1(run, tiny_model_dir, folder, arguments, message):
    given = arguments.replace("FOLDER", str(folder)).split()
    code, out, err = run("--model", tiny_model_dir, "--quiet", *given)
    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("angle-train: error: ")
    assert message in line
