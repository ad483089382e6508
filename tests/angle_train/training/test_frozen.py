"""Frozen layers: the step without them is the step with them, each text passes through them once."""

from contextlib import ExitStack
from dataclasses import replace

import pytest
import torch
import transformers
from cut_runs import CutOff, cut_off
from tiny_backbones import checkpoint
from train_runs import run_of, state, tuned_weights, weights, write

from angle_data.errors import InputError
from angle_train.model import activations
from angle_train.model.activations import ActivationFile
from angle_train.model.load import load_backbone
from angle_train.run import fit
from angle_train.training.frozen import check_frozen, computed_once, freeze_layers, layers_and_after

TEXTS = ["the node failed", "disk full", "a cable", "the api of the node is slow again today", "rain"]
FAST = {"loss": "papers", "epochs": 3, "batch_size": 16, "learning_rate": 1e-3, "evals_per_epoch": 2}
WHOLE = {"bert": "encoder.layer.", "roberta": "encoder.layer.", "mpnet": "encoder.layer."}
WHOLE |= {"distilbert": "transformer.layer.", "modernbert": "layers.", "llama": "layers.", "qwen3": "layers."}


def other_checkpoint(family, directory):
    """MPNet hands its layers one bias of places and returns tuples; DistilBERT names its layers otherwise."""
    import transformers as t

    checkpoint("bert", directory)
    kind = {"mpnet": t.MPNetModel, "distilbert": t.DistilBertModel, "albert": t.AlbertModel}[family]
    names = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 64}
    if family == "distilbert":
        names = {"dim": 32, "n_layers": 3, "n_heads": 2, "hidden_dim": 64}
    vocabulary = t.AutoConfig.from_pretrained(directory).vocab_size
    config = kind.config_class(vocab_size=vocabulary, max_position_embeddings=66, pad_token_id=1, **names)
    torch.manual_seed(0)
    kind(config).save_pretrained(directory)
    return directory


def backbone(family, directory):
    made = other_checkpoint if family in ("mpnet", "distilbert", "albert") else checkpoint
    return load_backbone(str(made(family, directory)), device="cpu")


def step(model, texts):
    """Loss and gradients of one step, with the dropout that seed 1 draws."""
    torch.manual_seed(1)
    model.zero_grad()
    rows = model({k: v for k, v in model.preprocess(texts).items()})["sentence_embedding"]
    loss = rows.square().mean() + (rows @ rows.T).cos().mean()
    loss.backward()
    return loss.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def without_dropout_below(model, count, prefix):
    """Train mode, with the modules of the frozen part in evaluation mode: what the cache stands for."""
    model.train()
    for name, module in model.transformers_model.named_modules():
        if name.startswith("embeddings") or any(name.startswith(f"{prefix}{i}") for i in range(count)):
            module.eval()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("family", WHOLE)
def test_loss_and_gradients_are_those_of_the_ordinary_step(family, count, tmp_path):
    model = backbone(family, tmp_path / "model")
    freeze_layers(model, count)
    without_dropout_below(model, count, WHOLE[family])
    batches = [TEXTS[:2], TEXTS[1:], TEXTS, TEXTS[3:4]]  # all new, some new, all kept, one without padding
    expected = [step(model, texts) for texts in batches]
    with computed_once(model, count, tmp_path / "kept", go_on=False):
        model.train()
        found = [step(model, texts) for texts in batches]
        assert (tmp_path / "kept" / "0-float32.index").stat().st_size == 24 * len(TEXTS)
    for (loss, gradients), (other, others) in zip(expected, found, strict=True):
        torch.testing.assert_close(other, loss, rtol=0, atol=1e-5)
        assert gradients.keys() == others.keys()
        for name, gradient in gradients.items():
            torch.testing.assert_close(others[name], gradient, rtol=0, atol=1e-5)
    trained = {name for name, p in model.transformers_model.named_parameters() if p.requires_grad}
    first = {f"{WHOLE[family]}{number}" for number in range(count, 3)}
    above = ("pooler", "norm", "final_norm")
    assert {name for name in trained if not name.startswith(above)}
    assert all(name.startswith((*first, *above)) for name in trained)
    assert not (tmp_path / "kept").exists()


def test_each_text_passes_through_them_once_and_without_dropout(tmp_path):
    model = backbone("bert", tmp_path / "model")
    freeze_layers(model, 2)
    read = []
    inner = model.transformers_model.encoder.layer[1].attention
    with computed_once(model, 2, tmp_path / "kept", go_on=False), ExitStack() as undo:
        undo.callback(
            inner.register_forward_hook(lambda m, _, out: read.append((len(out[0]), m.training))).remove
        )
        for texts in (TEXTS[:2], TEXTS[1:4], TEXTS, TEXTS):
            model.train()
            step(model, texts)
        assert read == [(2, False), (2, False), (1, False)]
        read.clear()
        model.eval()  # measured: everything is computed
        model.encode(TEXTS)
        assert [count for count, _ in read] == [len(TEXTS)]
    model.train()
    assert inner.training
    read.clear()


@pytest.mark.parametrize(
    "values", [{}, {"gradient_cache": True}, {"lora_rank": 4}, {"args": {"gradient_checkpointing": True}}]
)
def test_a_cut_off_run_ends_in_the_same_weights(values, rows, tmp_path):
    model = checkpoint("bert", tmp_path / "model")
    data = write(tmp_path / "pairs.jsonl", rows[:40])
    run = run_of(model, tmp_path / "whole", data, FAST | {"frozen_layers": 2} | values)
    fit(run)
    assert not (run.out / "checkpoints").exists()
    again = replace(run, out=tmp_path / "cut")
    with cut_off("on_step_end", 5), pytest.raises(CutOff):
        fit(again)
    assert any((again.out / "checkpoints" / "activations").iterdir())
    fit(again)
    assert weights(again.out) == weights(run.out)


def test_what_is_frozen_stays_the_backbones(rows, tmp_path):
    model = checkpoint("bert", tmp_path / "model")
    data = write(tmp_path / "pairs.jsonl", rows[:40])
    run = run_of(model, tmp_path / "out", data, FAST | {"frozen_layers": 2, "learning_rate": 5e-3})
    fit(run)
    before, after = state(model), state(tuned_weights(run.out))
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(".encoder.layer.2." in name for name in changed)


def test_frozen_layers_with_adapters_leave_those_below_as_they_were(rows, tmp_path):
    """And with the texts to keep, in chunks of any size: what is drawn does not depend on the cache."""
    made = checkpoint("bert", tmp_path / "model")
    values = FAST | {"frozen_layers": 2, "lora_rank": 4, "learning_rate": 0.05, "keep_general": True}
    run = run_of(made, tmp_path / "out", write(tmp_path / "pairs.jsonl", rows[:40]), values)
    fit(run)
    before, after = state(made), state(tuned_weights(run.out))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(".encoder.layer.2." in name for name in changed)


def test_what_cannot_be_frozen_is_refused_in_one_line_before_anything_is_measured(tmp_path, rows, caplog):
    with pytest.raises(
        InputError, match=r"frozen_layers 1: the layers of this backbone \(albert\) cannot be"
    ):
        check_frozen(backbone("albert", tmp_path / "albert"), 1)
    model = checkpoint("bert", tmp_path / "bert")
    data = write(tmp_path / "pairs.jsonl", rows[:40])
    refused = pytest.raises(
        InputError, match=r"frozen_layers 3: the backbone has 3 layers, .*; give at most 2"
    )
    with caplog.at_level("INFO", logger="angle"), refused:
        fit(run_of(model, tmp_path / "out", data, FAST | {"frozen_layers": 3}))
    assert "step 0" not in caplog.text


def test_layers_that_hand_on_more_than_their_output_are_refused(tmp_path):
    model = backbone("bert", tmp_path / "model")
    first = model.transformers_model.encoder.layer[0]
    compute = first.forward
    first.forward = lambda *args, **options: compute(*args, **options)[:, :1]
    with pytest.raises(InputError, match=r"frozen_layers 2: the layers .* hand on more than their output"):
        check_frozen(model, 2)


def test_activations_of_another_run_are_not_read(tmp_path):
    """Two trainings in one folder, as a search makes them, with different backbones."""
    model = backbone("bert", tmp_path / "model")
    freeze_layers(model, 1)
    folder = tmp_path / "kept"
    for go_on in (True, False):
        with ActivationFile(folder, 32, torch.float32).opened() as there:
            there.put(b"0" * 16, torch.ones(3, 32))
        with computed_once(model, 1, folder, go_on=go_on):
            assert folder.exists() is go_on


def test_a_file_that_a_kill_left_unfinished_is_read_up_to_there(tmp_path):
    one, other = torch.randn(3, 4), torch.randn(2, 4)
    with ActivationFile(tmp_path, 4, torch.float32).opened() as kept:
        kept.put(b"1" * 16, one)
        kept.put(b"2" * 16, other)
    data, index = tmp_path / "0-float32.bin", tmp_path / "0-float32.index"
    data.write_bytes(data.read_bytes()[:-4])
    index.write_bytes(index.read_bytes() + b"torn")
    with ActivationFile(tmp_path, 4, torch.float32).opened() as kept:
        assert b"1" * 16 in kept
        assert b"2" * 16 not in kept
        kept.put(b"2" * 16, other)
        assert torch.equal(kept.get(b"1" * 16), one)
        assert torch.equal(kept.get(b"2" * 16), other)


def test_a_disk_that_is_nearly_full_costs_time_alone(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(
        activations.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 2 * 7 * 32 * 4})
    )
    model = backbone("bert", tmp_path / "model")
    freeze_layers(model, 1)
    without_dropout_below(model, 1, WHOLE["bert"])
    expected = step(model, TEXTS)
    with computed_once(model, 1, tmp_path / "kept", go_on=False), caplog.at_level("WARNING", logger="angle"):
        model.train()
        step(model, TEXTS)
        loss, gradients = step(model, TEXTS)
    torch.testing.assert_close(loss, expected[0], rtol=0, atol=1e-5)
    for name, gradient in expected[1].items():
        torch.testing.assert_close(gradients[name], gradient, rtol=0, atol=1e-5)
    assert caplog.text.count("half of the free disk space holds activations of") == 1


def test_half_precision_is_kept_as_such(tmp_path):
    with ActivationFile(tmp_path, 4, torch.bfloat16).opened() as kept:
        kept.put(b"1" * 16, torch.full((2, 4), 1.5))
        assert torch.equal(kept.get(b"1" * 16), torch.full((2, 4), 1.5, dtype=torch.bfloat16))
    assert (tmp_path / "0-bfloat16.bin").stat().st_size == 2 * 4 * 2


@pytest.mark.parametrize("family", ["GPTNeoX", "Phi"])
def test_the_last_norm_is_above_the_layers(family):
    config = getattr(transformers, f"{family}Config")(
        vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8
    )
    model = getattr(transformers, f"{family}Model")(config)
    layers, after = layers_and_after(model)
    assert len(layers) == 2
    (norm,) = after
    assert isinstance(norm, torch.nn.LayerNorm)
