"""Runs of two processes that shard the model end where one process ends, and where they ended before."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from process_runs import check_alike, differences, report, run_program
from sentence_transformers import SentenceTransformer
from torch.distributed.fsdp import MixedPrecisionPolicy

from angle_data.errors import InputError
from angle_train.recipe import Recipe
from angle_train.train.sharding import ShardingTrainer, check_can_shard

PROGRAM = Path(__file__).with_name("fit_sharded.py")
ALIKE = ["stopped", "everything", "folds", "adapters"]


@pytest.fixture(scope="module")
def runs(tiny_model_dir, examples, tmp_path_factory):
    """The folder with every run, the exit codes of their processes, and what they said."""
    return run_program(PROGRAM, tiny_model_dir, examples, tmp_path_factory.mktemp("sharded"))


@pytest.mark.slow
def test_every_run_ended_as_it_should(runs):
    _, codes, errors = runs
    finished = {name: [0, 0] for name in [*ALIKE, "half", "noisy", "resumed", "there"]}
    assert codes == finished | {f"{name} in one": [0] for name in ALIKE} | {
        "interrupted": [130, 130],  # the signal reached one process only
        "killed": [9, 9],
        "there, killed": [9],
        "back, killed": [9, 9],
        "back": [0],
        "without GPUs": [1, 1],
    }
    assert "a model is sharded (FSDP) on GPUs, and this run is on the CPU" in errors


@pytest.mark.slow
@pytest.mark.parametrize("name", ALIKE)
def test_a_sharded_run_ends_where_one_process_does(runs, tiny_model_dir, name):
    one, two = runs[0] / name / "one", runs[0] / name / "two"
    check_alike(one, two)
    assert differences(tiny_model_dir, two)[-1] > 1e-3
    merges = [report(folder)["details"].get("merge") for folder in (one, two)]
    assert merges[0] == merges[1]
    assert bool(merges[0]) == (name in ("everything", "adapters"))


@pytest.mark.slow
def test_the_best_of_several_evaluations_is_kept(runs):
    found = report(runs[0] / "stopped" / "two")
    assert (found["kept"], found["best_step"], found["steps"], found["planned_steps"]) == ("tuned", 6, 8, 16)
    assert found["dev_after"] == pytest.approx(found["curve"][3]["dev"], abs=1e-9)


@pytest.mark.slow
def test_what_is_saved_is_an_ordinary_model(runs, tiny_model_dir):
    folder = runs[0] / "adapters" / "two"
    names = [
        set(SentenceTransformer(str(path), device="cpu").state_dict()) for path in (folder, tiny_model_dir)
    ]
    assert names[0] == names[1]
    assert not (folder / "checkpoints").exists()
    assert "FSDP" not in (folder / "README.md").read_text()


@pytest.mark.slow
def test_half_precision_computes_the_same_but_for_rounding(runs):
    exact, half = (report(runs[0] / name)["curve"] for name in ("everything/one", "half"))
    loss = exact[1]["terms"]["loss"]
    assert half[1]["terms"]["loss"] == pytest.approx(loss, rel=1e-3)
    assert half[1]["terms"]["loss"] != pytest.approx(loss, abs=1e-5)
    assert [point["dev"] for point in half] == pytest.approx([point["dev"] for point in exact], abs=0.05)


@pytest.mark.slow
def test_a_sharded_run_that_was_cut_off_twice_writes_the_same_bytes(runs):
    for name in ("model.safetensors", "report.json", "recipe.toml"):
        assert (runs[0] / "cut" / name).read_bytes() == (runs[0] / "noisy" / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["there", "back"])
def test_a_run_goes_on_with_another_number_of_processes(runs, name):
    """Without the optimiser's state the weights would be 5e-3 apart."""
    apart = differences(runs[0] / "stopped" / "one", runs[0] / name)
    assert apart[: len(apart) * 9999 // 10_000].max() < 1e-6
    assert report(runs[0] / name)["steps"] == report(runs[0] / "stopped" / "one")["steps"]


def test_half_precision_leaves_gradients_and_the_loss_in_full(tiny_model):
    plugin = SimpleNamespace()
    accelerator = SimpleNamespace(state=SimpleNamespace(fsdp_plugin=plugin), mixed_precision="bf16")
    trainer = SimpleNamespace(accelerator=accelerator, model=tiny_model)
    ShardingTrainer.shard(trainer, tiny_model)
    assert plugin.mixed_precision_policy == MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    found = tiny_model.to(torch.bfloat16)(tiny_model.preprocess(["the node failed"]))
    assert found["token_embeddings"].dtype == torch.bfloat16
    assert found["sentence_embedding"].dtype == torch.float32


def test_quantized_weights_are_not_sharded(tiny_model):
    recipe = Recipe().with_overrides({"quantization": "4bit", "lora_rank": 4})
    with pytest.raises(InputError, match="quantization 4bit and a sharded model"):
        check_can_shard(tiny_model, recipe)


def test_layers_that_are_named_have_to_be_there(tiny_model, monkeypatch):
    monkeypatch.setenv("FSDP_TRANSFORMER_CLS_TO_WRAP", "BertLayer, LlamaDecoderLayer")
    with pytest.raises(InputError, match="no layer of class LlamaDecoderLayer"):
        check_can_shard(tiny_model, Recipe())
    monkeypatch.setenv("FSDP_TRANSFORMER_CLS_TO_WRAP", "BertLayer")
    check_can_shard(tiny_model, Recipe())
