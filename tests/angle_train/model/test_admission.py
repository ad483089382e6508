"""What a model must be: tokens that it knows, compared by the cosine; adapters alone open too."""

import json
import shutil

import pytest
from peft import LoraConfig
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize
from train_runs import moved, now

from angle_data.errors import InputError
from angle_train import evaluate, fit, train
from angle_train.model.load import backbone_identity, load_backbone

FAST = {"loss": "graded", "epochs": 1, "batch_size": 16, "evals_per_epoch": 1, "device": "cpu"}


def saved(model, directory, **settings):
    """The model in a folder, with settings of its configuration."""
    model.save_pretrained(str(directory), create_model_card=False)
    file = directory / "config_sentence_transformers.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    return directory


@pytest.mark.parametrize("by", ["dot", "manhattan", "euclidean"])
def test_a_model_that_is_not_compared_by_the_cosine_is_refused(tiny_model, rows, tmp_path, by):
    folder = saved(tiny_model, tmp_path / "model", similarity_fn_name=by)
    with pytest.raises(InputError, match=f'compares embeddings by {by}.*"similarity_fn_name": "cosine"'):
        train(str(folder), rows, **FAST)
    with pytest.raises(InputError, match=f"model compares embeddings by {by}"):
        evaluate(folder, pairs=rows)


@pytest.mark.parametrize(("by", "taken"), [("dot", True), ("euclidean", True), ("manhattan", False)])
def test_of_embeddings_of_length_1_most_comparisons_are_the_cosine(tiny_model, rows, tmp_path, by, taken):
    tiny_model.append(Normalize())
    folder = saved(tiny_model, tmp_path / "model", similarity_fn_name=by)
    if taken:
        train(str(folder), rows, **FAST)
    else:
        with pytest.raises(InputError, match="compares embeddings by manhattan"):
            train(str(folder), rows, **FAST)


@pytest.fixture
def grown_dir(tiny_model, tmp_path):
    """A model whose tokenizer got a word for which its weights have no embedding."""
    tiny_model.tokenizer.add_tokens(["grafana"])
    return saved(tiny_model, tmp_path / "grown")


def test_a_token_without_an_embedding_is_named_where_a_text_has_it(grown_dir, rows, tmp_path):
    train(str(grown_dir), rows, **FAST)  # no text has it
    more = [*rows, {"sentence1": "grafana is down", "sentence2": "no dashboards", "score": 5.0}]
    said = r"grown: its tokenizer gives token \d+ \('grafana'\), its weights hold .*resize_token_embeddings"
    with pytest.raises(InputError, match=said):
        train(str(grown_dir), more, **FAST)
    with pytest.raises(InputError, match=said):
        fit(rows, backbone=grown_dir, dev=rows, test=more, out=tmp_path / "out", **FAST)
    with pytest.raises(InputError, match="grafana"):
        evaluate(grown_dir, pairs=more)


@pytest.fixture
def adapter_dir(tiny_model_dir, tmp_path):
    """Adapters alone, as peft saves them beside nothing else."""
    base = shutil.copytree(tiny_model_dir, tmp_path / "base")
    model = SentenceTransformer(str(base), device="cpu")
    model[0].auto_model.add_adapter(
        LoraConfig(r=2, target_modules=["query", "value"], task_type="FEATURE_EXTRACTION")
    )
    moved(model)
    model[0].auto_model.save_pretrained(str(tmp_path / "adapter"))
    model.tokenizer.save_pretrained(str(tmp_path / "adapter"))
    assert not (tmp_path / "adapter" / "config.json").exists()
    return tmp_path / "adapter"


def test_a_folder_of_adapters_opens_as_in_sentence_transformers(adapter_dir, rows, tmp_path):
    texts = [row["sentence1"] for row in rows[:8]]
    theirs = SentenceTransformer(str(adapter_dir), device="cpu").encode(texts)
    ours = load_backbone(str(adapter_dir), device="cpu").encode(texts)
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert ours != pytest.approx(
        SentenceTransformer(str(tmp_path / "base"), device="cpu").encode(texts), abs=1e-4
    )
    found = fit(rows, backbone=adapter_dir, dev=now(rows), out=tmp_path / "out", **FAST)
    assert not (tmp_path / "out" / "adapter_config.json").exists()
    assert SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(texts).shape == (8, 32)
    assert found.report.backbone.startswith("adapter@")


def test_adapters_of_another_base_are_another_backbone(adapter_dir, tmp_path):
    before = backbone_identity(str(adapter_dir))
    weights = tmp_path / "base" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"abcd")
    assert backbone_identity(str(adapter_dir)) != before
