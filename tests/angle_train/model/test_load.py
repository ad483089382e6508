"""Loading models: directories, plain checkpoints, and the errors for everything that is no model."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tiny_backbones import checkpoint

from angle_data.errors import InputError, MissingExtraError
from angle_train.model.load import (
    backbone_identity,
    check_device,
    load_backbone,
    load_for_training,
    say_once,
)
from angle_train.recipe import BackboneConfig


def test_directory_loads_and_sequence_length_can_be_limited(tiny_model_dir):
    assert load_backbone(str(tiny_model_dir), device="cpu").max_seq_length == 64
    assert load_backbone(str(tiny_model_dir), max_seq_length=16, device="cpu").max_seq_length == 16


def test_a_roberta_reads_no_more_tokens_than_it_has_positions_after_paddings(tmp_path):
    assert load_backbone(str(checkpoint("roberta", tmp_path / "roberta")), device="cpu").max_seq_length == 64


def test_plain_checkpoint_is_mean_pooled_and_says_so(tiny_model_dir, caplog):
    checkpoint = tiny_model_dir.parent / "checkpoint"
    say_once.cache_clear()
    with caplog.at_level("INFO", logger="angle"):
        load_backbone(str(checkpoint), device="cpu")
        model = load_backbone(str(checkpoint), device="cpu")
        assert caplog.text.count("read with mean pooling") == 1  # a run loads it several times
        load_for_training(str(checkpoint), BackboneConfig(pooling="cls"), device="cpu")
    assert caplog.messages[1:] == [f"{checkpoint}: tuned with cls pooling, as the recipe says"]
    reference = load_backbone(str(tiny_model_dir), device="cpu")  # the same weights, mean pooling spelt out
    texts = ["the node failed", "a much longer text about the api and its latency"]
    assert model.encode(texts) == pytest.approx(reference.encode(texts), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("model.safetensors", kept) for kept in (0, 40, 2000)),
        ("pytorch_model.bin", b""),
        ("pytorch_model.bin", b"version https://git-lfs.github.com/spec/v1\n"),
    ],
)
def test_weights_that_are_cut_off_or_none_are_one_line(tmp_path, name, content):
    directory = checkpoint("bert", tmp_path / "bert")
    whole = (directory / "model.safetensors").read_bytes()
    (directory / "model.safetensors").unlink()
    (directory / name).write_bytes(whole[:content] if isinstance(content, int) else content)
    with pytest.raises(InputError, match=r"bert cannot be loaded as .*; use .* save it again$"):
        load_backbone(str(directory), device="cpu")


def test_a_model_that_lacks_weights_is_refused_but_for_an_unused_pooler(tmp_path):
    directory = checkpoint("bert", tmp_path / "bert")
    file = directory / "model.safetensors"
    weights = {name: weight for name, weight in load_file(file).items() if "pooler" not in name}
    save_file(weights, file, metadata={"format": "pt"})
    load_backbone(str(directory), device="cpu")
    weights = {name: weight for name, weight in weights.items() if "layer.0.output" not in name}
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"bert has missing .*layer\.0\.output.*; download or save it again"):
        load_backbone(str(directory), device="cpu")


def test_saved_chat_models_keep_their_template(tmp_path):
    model = SentenceTransformer(str(checkpoint("llama", tmp_path / "llama")), device="cpu")
    model.save_pretrained(str(tmp_path / "chat"), create_model_card=False)
    again = load_backbone(str(tmp_path / "chat"), device="cpu")
    assert (again.encode("the node") == model.encode("the node")).all()
    assert again.preprocess(["x"])["input_ids"].shape[1] > 1


def test_a_bidirectional_language_model_is_averaged(tmp_path):
    directory = checkpoint("llama", tmp_path / "llama")
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"is_causal": False}))
    model = load_backbone(str(directory), device="cpu")
    assert model[1].pooling_mode == "mean"
    # And given plain text, as any checkpoint that was not saved as an embedding model.
    assert model.preprocess(["the node"])["input_ids"][0].tolist() == model.tokenizer("the node")["input_ids"]


@pytest.mark.parametrize(
    ("device", "gpus", "message"),
    [
        ("cuda", 0, "--device cuda: torch finds no such device; available: cpu$"),
        ("gpu", 0, "--device gpu: torch finds no such device"),
        ("meta", 0, "torch finds no such device"),
        (
            "cuda:2",
            2,
            "--device cuda:2: torch finds .*; available: cpu, cuda, cuda:0, cuda:1$",
        ),
    ],
)
def test_devices_that_are_not_there_are_named(monkeypatch, device, gpus, message):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(InputError, match=message):
        check_device(device)


def test_devices_that_are_there_are_taken(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    for device in (None, "cpu", "cuda", "cuda:1", "mps"):
        check_device(device)
    with pytest.raises(InputError, match="available: cpu, cuda, mps; CUDA_VISIBLE_DEVICES chooses the GPU"):
        check_device("cuda:1", numbered=False)


def test_a_tokenizer_without_any_end_is_refused(tmp_path):
    directory = checkpoint("llama", tmp_path / "llama", pad=False)
    settings = json.loads((directory / "tokenizer_config.json").read_text())
    settings = {name: value for name, value in settings.items() if name != "eos_token"}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match=r"has no padding token and no end-of-text token; set one"):
        load_backbone(str(directory), device="cpu")


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    directory = checkpoint("bert", tmp_path / "bert")
    model = load_backbone(str(directory), device="cpu")
    tokens = model.tokenizer.vocab_size
    model.transformers_model.resize_token_embeddings(tokens - 1)
    model.save_pretrained(str(tmp_path / "smaller"), create_model_card=False)
    message = rf"tokenizer has {tokens} tokens, its weights hold embeddings for {tokens - 1}; "
    with pytest.raises(InputError, match=message):
        load_backbone(str(tmp_path / "smaller"), device="cpu")


def test_code_that_a_model_brings_is_not_run(tmp_path):
    directory = checkpoint("bert", tmp_path / "bert")
    config = json.loads((directory / "config.json").read_text())
    own = {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Model"}}
    (directory / "config.json").write_text(json.dumps(config | own))
    (directory / "own.py").write_text("raise SystemExit('run')")
    with pytest.raises(InputError, match=r"it needs its own code, which is never run here"):
        load_backbone(str(directory), device="cpu")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./missing", r"model directory ./missing does not exist; check the path"),
        ("/missing/model", r"model directory /missing/model does not exist"),
        ("runs/one/model", r"model directory runs/one/model does not exist"),
        (
            "someone/model",
            r"not a local directory and not in the cache, and the hub cannot be reached .* HF_HUB_OFFLINE",
        ),
        ("no such model", r"'no such model' is neither a local directory nor a hub id"),
    ],
)
def test_unknown_names_are_refused(monkeypatch, tmp_path, name, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=message):
        load_backbone(name)


def test_directories_without_a_model_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no model: it has .* config.json; give the .* saved$"):
        load_backbone(str(tmp_path))
    (tmp_path / ".angle").mkdir()
    (tmp_path / ".angle" / "fit_state.json").touch()
    with pytest.raises(InputError, match=r"; give the .*, or run fit again if it was interrupted here$"):
        load_backbone(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "abacus"}))
    with pytest.raises(InputError, match=r"cannot be loaded as an embedding model: .*abacus"):
        load_backbone(str(tmp_path))
    with pytest.raises(InputError, match=r"config.json is a file; give the directory of a model"):
        load_backbone(str(tmp_path / "config.json"))


def test_missing_extra_names_the_install_command_of_a_clone(monkeypatch, tiny_model_dir):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "accelerate" else found(name)
    )
    with pytest.raises(MissingExtraError) as caught:
        load_backbone(str(tiny_model_dir))
    assert str(caught.value) == 'loading a model needs the "train" extra: pip install -e ".[train]"'


@pytest.fixture
def copied_model(tiny_model_dir, tmp_path):
    return Path(shutil.copytree(tiny_model_dir, tmp_path / "copied"))


def test_a_model_is_known_by_name_and_content_not_by_place(copied_model, tmp_path):
    identity = backbone_identity(str(copied_model))
    assert identity.startswith("copied@")
    assert len(identity) == len("copied@") + 12
    moved = copied_model.rename(tmp_path / "elsewhere").rename(tmp_path / "x")
    assert backbone_identity(str(moved)).split("@")[1] == identity.split("@")[1]
    assert backbone_identity("someone/model") == "someone/model"


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("model.safetensors", True),
        ("config.json", True),
        ("modules.json", True),
        ("tokenizer.json", True),
        ("1_Pooling/config.json", True),
        ("vocab.txt", True),
        ("chat_template.jinja", True),
        ("README.md", False),
        ("report.json", False),
        ("onnx/model.bin", False),
        (".cache/x.json", False),
    ],
)
def test_what_is_read_of_a_model_decides_its_identity(copied_model, name, counts):
    before = backbone_identity(str(copied_model))
    (copied_model / name).parent.mkdir(exist_ok=True)
    with (copied_model / name).open("ab") as stream:
        stream.write(b" ")
    assert (backbone_identity(str(copied_model)) != before) == counts
