"""Frozen layers: the embeddings and the lowest layers of a backbone stay as they are, and are computed once.

What does not change gives every text the same activations in every step. So these are computed when a text
is first drawn, without dropout and without a gradient, and kept (`model.activations`); from then on a step
computes the layers above alone. Loss and gradients are those of the ordinary step with the same weights
frozen.

A layer still stands where it did: only its `forward` is exchanged while a training runs. So what is saved,
measured and resumed is an ordinary model.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from angle_data.errors import InputError
from angle_train.model.activations import ActivationFile
from angle_train.model.load import say_once
from angle_train.training.processes import process_number

# Where the layers stand: in BERT and its kin; in DistilBERT; in ModernBERT and language models.
_LAYERS = ("encoder.layer", "transformer.layer", "layers")
# What comes after the layers: in BERT; in language models; in ModernBERT; in GPT-NeoX; in Phi.
_ABOVE = ("pooler", "norm", "final_norm", "final_layer_norm", "final_layernorm")


def check_frozen(model: SentenceTransformer, count: int) -> None:
    """Raise an InputError unless the `count` lowest layers of `model` can be frozen and computed once."""
    if count:
        _probe(model, _lowest(model, count))


def freeze_layers(model: SentenceTransformer, count: int) -> None:
    """Let the embeddings, the `count` lowest layers, and what all layers share get no gradient.

    Raises:
        InputError: As `check_frozen`.
    """
    if not count:
        return
    transformer: Any = model.transformers_model
    _lowest(model, count)
    above = {weights for module in _above(model, count) for weights in module.parameters()}
    for weights in transformer.parameters():
        if weights not in above:
            weights.requires_grad_(False)
    total = len(_layers(transformer))
    say_once(
        f"the embeddings and the {count} lowest of {total} layers stay as they are, and are computed once "
        "for each text"
    )


@contextmanager
def computed_once(model: SentenceTransformer, count: int, folder: Path, *, go_on: bool) -> Iterator[None]:
    """Compute the frozen layers once for each text while `model` trains inside the block.

    Args:
        model: With `count` frozen layers; 0 changes nothing.
        count: How many.
        folder: Keeps the activations until the block has ended well.
        go_on: Whether those that are there are of the same run.
    """
    if not go_on and folder.is_dir():
        shutil.rmtree(folder)
    if not count:
        yield
        return
    transformer: Any = model.transformers_model
    layers = _lowest(model, count)
    kept = ActivationFile(folder, transformer.config.hidden_size, transformer.dtype, process_number())
    lookup = _Lookup(kept, as_tuple=_probe(model, layers))
    with kept.opened(), ExitStack() as undo:
        undo.callback(_reader(model).register_forward_pre_hook(lookup.begin).remove)
        for number, layer in enumerate(layers, 1):
            _exchange(undo, layer, "forward", lookup.instead_of(layer.forward, last=number == count))
        for module in _below(model, count):  # without dropout, whatever the trainer switches on
            module.eval()
            _exchange(undo, module, "train", lambda mode=True, module=module: module)
        yield
    shutil.rmtree(folder, ignore_errors=True)


def layers_and_after(transformer: Any) -> tuple[Sequence[nn.Module], Sequence[nn.Module]]:
    """Return all layers of a transformer, the lowest first, and what it has above them.

    No layers where it is not known what they are.
    """
    after = (getattr(transformer, name, None) for name in _ABOVE)
    return _layers(transformer), [module for module in after if isinstance(module, nn.Module)]


def _above(model: SentenceTransformer, count: int) -> list[nn.Module]:
    """Return what comes after the `count` lowest layers."""
    layers, after = layers_and_after(model.transformers_model)
    return [*layers[count:], *after]


def _below(model: SentenceTransformer, count: int) -> list[nn.Module]:
    """Return every module without a weight that trains, but for those in the layers above.

    One without weights, such as dropout, counts too; the modules around it hold what trains.
    """
    transformer: Any = model.transformers_model
    above = {inner for module in _above(model, count) for inner in module.modules()}
    return [
        module
        for module in transformer.modules()
        if module not in above and not any(weights.requires_grad for weights in module.parameters())
    ]


def _exchange(undo: ExitStack, module: nn.Module, name: str, function: Callable[..., Any]) -> None:
    """Put a function in the place of a method of this one module, until `undo` is closed."""
    module.__dict__[name] = function
    undo.callback(module.__dict__.pop, name, None)


def _reader(model: SentenceTransformer) -> nn.Module:
    """Return the module that hands the tokens of texts to the transformer; it calls no hook of that."""
    reader: nn.Module = next(module for module in model.modules() if isinstance(module, Transformer))
    return reader


def _layers(transformer: Any) -> Sequence[nn.Module]:
    """Return all layers of a transformer, the lowest first; none where it is not known what they are."""
    for path in _LAYERS:
        found: Any = transformer
        for name in path.split("."):
            found = getattr(found, name, None)
        if isinstance(found, nn.ModuleList):
            return list(found)
    return []


def _lowest(model: SentenceTransformer, count: int) -> Sequence[nn.Module]:
    """Return the lowest layers, or raise an InputError unless there are more than so many."""
    transformer: Any = model.transformers_model
    layers = _layers(transformer)
    if not layers:
        raise InputError(
            f"frozen_layers {count}: the layers of this backbone ({transformer.config.model_type}) cannot be "
            "frozen; set it to 0"
        )
    if count >= len(layers):
        raise InputError(
            f"frozen_layers {count}: the backbone has {len(layers)} layers, and at least one must be "
            f"trained; give at most {len(layers) - 1}"
        )
    return layers[:count]


@torch.no_grad()
def _probe(model: SentenceTransformer, layers: Sequence[nn.Module]) -> bool:
    """Return whether a layer returns its output in a tuple; raise an InputError unless all work alike.

    One text is encoded: each layer must be called once, the lowest first, and turn what it gets first into
    something of the same shape.
    """
    seen: list[tuple[nn.Module, Any, Any]] = []
    training = model.training
    with ExitStack() as undo:
        undo.callback(model.train, training)
        for layer in layers:
            watch = layer.register_forward_hook(lambda *called: seen.append(called))
            undo.callback(watch.remove)
        model.eval()
        inputs = model.preprocess(["a"])
        model({name: _to(value, model.device) for name, value in inputs.items()})
    outputs = [given[0] if isinstance(given, tuple) else given for _, _, given in seen]
    alike = [layer for layer, _, _ in seen] == list(layers) and all(
        got and isinstance(got[0], Tensor) and got[0].ndim == 3 and got[0].shape == output.shape
        for (_, got, _), output in zip(seen, outputs, strict=True)
    )
    if not alike:
        transformer: Any = model.transformers_model
        raise InputError(
            f"frozen_layers {len(layers)}: the layers of this backbone ({transformer.config.model_type}) "
            "hand on more than their output; set it to 0"
        )
    return isinstance(seen[0][2], tuple)


def _to(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch on its way through the frozen layers.

    Attributes:
        keys: Of each text, from its tokens.
        mask: Which of the places (B, L) hold tokens, boolean.
        missing: Rows of the texts whose activations are not kept.
    """

    keys: Sequence[bytes]
    mask: Tensor
    missing: Sequence[int]


class _Lookup:
    """What stands in the place of the frozen layers: only texts that are not kept pass through these."""

    def __init__(self, kept: ActivationFile, *, as_tuple: bool) -> None:
        self._kept = kept
        self._as_tuple = as_tuple
        self._batch: _Batch | None = None

    def begin(self, reader: nn.Module, args: tuple[Any, ...]) -> None:
        """Note which texts the transformer is about to read; where it is measured, everything is computed."""
        inputs: dict[str, Any] = args[0]
        mask = inputs.get("attention_mask")
        ids = inputs.get("input_ids")
        self._batch = None
        if not reader.training or ids is None or mask is None:
            return
        mask = mask.bool()
        rows = zip(ids.cpu().numpy(), mask.cpu().numpy(), strict=True)
        keys = [blake2b(row[own].tobytes(), digest_size=16).digest() for row, own in rows]
        self._batch = _Batch(keys, mask, [row for row, key in enumerate(keys) if key not in self._kept])

    def instead_of(self, compute: Callable[..., Any], *, last: bool) -> Callable[..., Any]:
        """Return what a frozen layer does instead of `compute`, its own forward pass."""

        def forward(hidden: Tensor, *args: Any, **options: Any) -> Any:
            batch = self._batch
            if batch is None:
                return compute(hidden, *args, **options)
            if batch.missing:
                hidden = _advance(compute, hidden, batch.missing, args, options)
            if last:
                hidden = self._filled(hidden, batch)
            return (hidden,) if self._as_tuple else hidden

        return forward

    def _filled(self, hidden: Tensor, batch: _Batch) -> Tensor:
        """Return the activations (B, L, D) of all texts, 0 where there is no token; keep the new ones.

        `hidden` has those of the missing texts.
        """
        computed = dict(zip(batch.missing, hidden[batch.missing].to("cpu", self._kept.dtype), strict=True))
        places = batch.mask.cpu()
        parts = []
        for row, key in enumerate(batch.keys):
            if row in computed:
                parts.append(computed[row][places[row]])
                self._kept.put(key, parts[-1])
            else:
                parts.append(self._kept.get(key))
        filled = torch.zeros_like(hidden)
        filled[batch.mask] = torch.cat(parts).to(hidden)
        return filled


@torch.no_grad()
def _advance(
    compute: Callable[..., Any], hidden: Tensor, rows: Sequence[int], args: Any, options: dict[str, Any]
) -> Tensor:
    """Return activations (B, L, D) of which these rows, and no others, have passed through a layer."""
    count = len(hidden)

    def own(value: Tensor) -> Tensor:
        return value[rows] if value.ndim and len(value) == count else value

    if "past_key_values" in options:  # it would keep what nobody reads
        options["past_key_values"] = None
    if len(rows) < count:
        args, options = tree_map_only(Tensor, own, (args, options))
    output = compute(hidden[rows], *args, **options)
    advanced = hidden.clone()
    advanced[rows] = (output[0] if isinstance(output, tuple) else output).to(hidden.dtype)
    return advanced
