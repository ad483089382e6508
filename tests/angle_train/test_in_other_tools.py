"""A model that `fit` saved, in the hands of others: their evaluators find our figures; ONNX; a static model.

mteb, onnxruntime with onnxscript, and model2vec are no dependencies: their tests are skipped without them.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import (
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
)

from angle_data.jsonl import write_jsonl
from angle_train import evaluate, fit
from angle_train.data.pairs import load_pairs

ROOT = Path(__file__).resolve().parents[2]
METRICS = ("ndcg@10", "mrr@10", "recall@10", "recall@100")
SHORT = {"epochs": 1, "max_seq_length": 32, "batch_size": 16, "seed": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def rows(examples):
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    return [
        {name: row[name] for name in ("sentence1", "sentence2", "score")} for row in map(json.loads, lines)
    ]


@pytest.fixture(scope="module")
def world(rows, tmp_path_factory):
    """A folder with pairs, a search, and what fit made of the pairs: its tuned weights, taken or not."""
    world = tmp_path_factory.mktemp("others")
    write_jsonl(world / "train.jsonl", rows[:64])
    write_jsonl(world / "pairs.jsonl", rows[64:])
    texts = list(dict.fromkeys(row["sentence2"] for row in rows))
    names = {text: f"d{at:03}" for at, text in enumerate(texts)}
    queries = {f"q{at:03}": row for at, row in enumerate(rows) if row["score"] >= 3}
    search = world / "search"
    write_jsonl(search / "corpus.jsonl", ({"_id": name, "text": text} for text, name in names.items()))
    write_jsonl(
        search / "queries.jsonl", ({"_id": at, "text": row["sentence1"]} for at, row in queries.items())
    )
    lines = [f"{at}\t{names[row['sentence2']]}\t1" for at, row in queries.items()]
    (search / "qrels").mkdir()
    (search / "qrels/test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return world


@pytest.fixture(scope="module")
def saved(world, tiny_model_dir):
    result = fit(
        world / "train.jsonl",
        backbone=tiny_model_dir,
        out=world / "model",
        dev=world / "pairs.jsonl",
        **SHORT,
    )
    assert result
    tuned = world / "model" / "tuned"
    return tuned if tuned.is_dir() else world / "model"


def searched(world):
    """The documents, queries and relevant documents of the search."""
    parts = []
    for name in ("corpus", "queries"):
        lines = (world / "search" / f"{name}.jsonl").read_text().splitlines()
        parts.append({row["_id"]: row["text"] for row in map(json.loads, lines)})
    lines = (world / "search/qrels/test.tsv").read_text().splitlines()[1:]
    wanted = {}
    for line in lines:
        query, document, grade = line.split("\t")
        wanted.setdefault(query, {})[document] = int(grade)
    return *parts, wanted


def figures(found):
    """Our figures of the model alone, by metric, as shares of 1."""
    return {row["metric"]: row["score"] / 100 for row in found if row["model"] == found[-1]["model"]}


@pytest.fixture(scope="module")
def ours(world, saved):
    pairs = evaluate(saved, pairs=world / "pairs.jsonl", device="cpu").figures
    search = evaluate(saved, search=world / "search", device="cpu").figures
    return figures(pairs) | figures(search)


def test_sentence_transformers_evaluators_find_our_figures(world, saved, ours):
    model = SentenceTransformer(str(saved), device="cpu")
    pairs = load_pairs(str(world / "pairs.jsonl"))
    evaluator = EmbeddingSimilarityEvaluator(
        list(pairs.text1), list(pairs.text2), list(pairs.score), main_similarity="cosine", name="x"
    )
    assert ours["spearman"] == pytest.approx(evaluator(model)["x_spearman_cosine"], abs=1e-6)
    texts, queries, wanted = searched(world)
    retrieval = InformationRetrievalEvaluator(
        queries,
        texts,
        {name: set(found) for name, found in wanted.items()},
        mrr_at_k=[10],
        ndcg_at_k=[10],
        precision_recall_at_k=[10, 100],
        write_csv=False,
    )
    theirs = retrieval(model)
    assert [ours[name] for name in METRICS] == pytest.approx(
        [theirs[f"cosine_{name}"] for name in METRICS], abs=1e-6
    )
    assert 0 < ours["ndcg@10"] < 1


@pytest.mark.filterwarnings("default")
def test_mteb_finds_our_figures(world, saved, ours):
    mteb = pytest.importorskip("mteb")
    from datasets import Dataset, DatasetDict
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    def described(kind, score):
        return TaskMetadata(
            name=f"Own{kind}",
            type=kind,
            main_score=score,
            description="own",
            reference="https://example.org",
            dataset={"path": "NA", "revision": "NA"},
            category="t2t",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            date=("2026-01-01", "2026-01-02"),
            dialect=[],
            domains=[],
            task_subtypes=[],
            license="cc0-1.0",
            annotations_creators="derived",
            modalities=["text"],
            sample_creation="found",
            bibtex_citation="",
        )

    class OwnPairs(AbsTaskSTS):
        metadata = described("STS", "cosine_spearman")

        def load_data(self, **_):
            lines = map(json.loads, (world / "pairs.jsonl").read_text().splitlines())
            self.dataset = DatasetDict({"test": Dataset.from_list(list(lines))})
            self.data_loaded = True

    class OwnSearch(AbsTaskRetrieval):
        metadata = described("Retrieval", "ndcg_at_10")

        def load_data(self, **_):
            texts, queries, wanted = searched(world)
            corpus, asked = (
                Dataset.from_list([{"id": name, "text": text} for name, text in part.items()])
                for part in (texts, queries)
            )
            split = {"corpus": corpus, "queries": asked, "relevant_docs": wanted, "top_ranked": None}
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    model = SentenceTransformer(str(saved), device="cpu")
    found = mteb.evaluate(
        model, [OwnPairs(), OwnSearch()], cache=None, co2_tracker=False, show_progress_bar=False
    )
    pairs, search = (result.scores["test"][0] for result in found.task_results)
    assert pairs["cosine_spearman"] == pytest.approx(ours["spearman"], abs=1e-6)
    theirs = [search[name.replace("@", "_at_")] for name in METRICS]
    assert theirs == pytest.approx([ours[name] for name in METRICS], abs=6e-6)  # it rounds to five places


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("export_example", ROOT / "examples" / "export.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("default")  # of torch's exporter
def test_onnx_gives_the_same_cosines_without_torch(example, world, saved, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    pairs = load_pairs(str(world / "pairs.jsonl"))
    found = example.export("onnx", saved, tmp_path / "onnx", pairs)
    assert found["difference"] < 1e-5
    assert found["after"] == pytest.approx(found["before"], abs=0.01)
    encode = example.onnx_encoder(tmp_path / "onnx")
    texts = [*pairs.text1, " ".join(pairs.text2)]  # more than a block, of other lengths, one cut off
    expected = SentenceTransformer(str(saved), device="cpu").encode(texts)
    assert np.abs(encode(texts) - expected).max() < 1e-5


@pytest.mark.filterwarnings("default")
def test_a_static_model_opens_without_anything_of_ours(example, world, saved, tmp_path):
    pytest.importorskip("model2vec.distill")
    pairs = load_pairs(str(world / "pairs.jsonl"))
    found = example.export("static", saved, tmp_path / "static", pairs)
    model = SentenceTransformer(str(tmp_path / "static"), device="cpu")
    assert type(model[0]).__name__ == "StaticEmbedding"
    cosines = example.cosines(model.encode, pairs)
    assert 100 * example.spearman(pairs.score, cosines) == pytest.approx(found["after"])
    words = model.encode(["disk full node", "node full disk"])
    assert np.abs(words[0] - words[1]).max() < 1e-6  # the order of the words is lost


def test_figures_are_those_of_what_encodes(example, world):
    pairs = load_pairs(str(world / "pairs.jsonl"))
    vectors = {text: [1.0, float(at)] for at, text in enumerate({*pairs.text1, *pairs.text2})}
    cosines = example.cosines(lambda texts: np.array([vectors[text] for text in texts]), pairs)
    one, other = (np.array(vectors[texts[0]]) for texts in (pairs.text1, pairs.text2))
    assert cosines[0] == pytest.approx(one @ other / np.sqrt((one @ one) * (other @ other)))


def test_a_model_with_a_default_prompt_is_refused(example, world, tiny_model_dir, tmp_path):
    model = SentenceTransformer(str(tiny_model_dir), device="cpu", prompts={"q": "ask: "})
    model.default_prompt_name = "q"
    model.save_pretrained(str(tmp_path / "prompted"), create_model_card=False)
    with pytest.raises(SystemExit, match="puts a prompt before each text"):
        example.export(
            "onnx", tmp_path / "prompted", tmp_path / "out", load_pairs(str(world / "pairs.jsonl"))
        )
