"""From the token embeddings of a text to one embedding, with modules that Sentence Transformers brings.

A pooling is a list of such modules, so a saved model holds it and needs nothing of this toolkit. Two of the
papers' poolings are no module of their own but a fixed weighting, which is frozen here, in new models and in
loaded ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from angle_data.errors import InputError
from angle_train.recipe import CHECKPOINT

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from sentence_transformers.sentence_transformer.modules.pooling import PoolingMode
    from torch import nn


def set_pooling(model: SentenceTransformer, name: str) -> None:
    """Replace how `model` pools; what follows its pooling (normalisation, a trained layer) stays.

    Args:
        model: Opens with a transformer, then pools.
        name: Key of `POOLINGS`.

    Raises:
        InputError: The model does not consist of a transformer and a pooling, or `name` reads the first token
            of a causal model.
    """
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    modules = list(model)
    at = next((i for i, module in enumerate(modules) if isinstance(module, Pooling)), None)
    if at is None or not isinstance(modules[0], Transformer):
        raise InputError(
            f"pooling {name} needs a transformer with a pooling after it, which this backbone is not; set "
            f"pooling = {CHECKPOINT}"
        )
    if name in FIRST_TOKEN and is_causal(model):
        raise InputError(
            f"pooling {name} reads the first token, which in a causal language model does not see the "
            "text after it; set pooling = last-token"
        )
    after = modules[at + 1 :]
    if after and _is_fixed_mean(after[0]):
        after = after[1:]
    modules[0].model.config.output_hidden_states = False
    pooling = POOLINGS[name](modules[0])
    del model[1:]
    for module in (*pooling, *after):
        model.append(module.to(model.device))
    freeze_fixed_weights(model)


def is_causal(model: SentenceTransformer) -> bool:
    """Return whether tokens see only those before them; BERT can be built so too, and some LLMs are not."""
    transformer = model.transformers_model
    if transformer is None or not getattr(transformer.config, "is_causal", True):
        return False
    return any(getattr(module, "is_causal", False) is True for module in transformer.modules())


def _pooling(transformer: Transformer, *modes: PoolingMode) -> Pooling:
    from sentence_transformers.sentence_transformer.modules import Pooling

    pooling: Pooling = Pooling(transformer.get_embedding_dimension(), modes)
    return pooling


def _last_layer(mode: PoolingMode) -> Callable[[Transformer], list[nn.Module]]:
    return lambda transformer: [_pooling(transformer, mode)]


def cls_last_avg(transformer: Transformer) -> list[nn.Module]:
    """Mean of `cls` and `last-avg`: both concatenated (2D), then projected by [I/2, I/2]."""
    import torch
    from sentence_transformers.base.modules import Dense

    width = transformer.get_embedding_dimension()
    halves = torch.eye(width).repeat(1, 2) / 2
    mean = Dense(2 * width, width, bias=False, activation_function=torch.nn.Identity(), init_weight=halves)
    return [_pooling(transformer, "cls", "mean"), mean]


def first_last_avg(transformer: Transformer) -> list[nn.Module]:
    """Mean over the tokens of the first and the last layer, the embedding layer not counted."""
    import torch
    from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling

    layers = transformer.model.config.num_hidden_layers
    weights = torch.zeros(layers)
    weights[[0, -1]] = 1.0
    transformer.model.config.output_hidden_states = True  # is saved with the model
    # Entry 0 of the layers is the embedding layer.
    width, kept = transformer.get_embedding_dimension(), torch.nn.Parameter(weights)
    weighted = WeightedLayerPooling(width, layers, layer_start=1, layer_weights=kept)
    return [weighted, _pooling(transformer, "mean")]


POOLINGS: dict[str, Callable[[Transformer], list[nn.Module]]] = {
    "cls": _last_layer("cls"),
    "last-avg": _last_layer("mean"),
    "last-max": _last_layer("max"),
    "cls-last-avg": cls_last_avg,
    "first-last-avg": first_last_avg,
    "last-token": _last_layer("lasttoken"),
}
"""Name, as in AnglE Table 4, to a function from a transformer to the modules that follow it.

`cls` takes the first token, `last-token` the last one that is no padding: the only one that has seen the
whole text in a causal model. `last-avg` and `last-max` take mean and maximum over the last layer's tokens.
"""

FIRST_TOKEN = ("cls", "cls-last-avg")
"""Those that read the first token, of use only where it sees the whole text."""


def freeze_fixed_weights(model: SentenceTransformer) -> None:
    """Take the weights that only spell out a pooling out of training: neither gradient nor weight decay.

    They are recognised by their values, since files do not say what was frozen.
    """
    for module in model:
        if _is_fixed_mean(module) or _is_fixed_ends(module):
            module.requires_grad_(False)


def _is_fixed_mean(module: nn.Module) -> bool:
    """Return whether it is the projection of `cls_last_avg`."""
    import torch
    from sentence_transformers.base.modules import Dense

    if not isinstance(module, Dense) or module.bias or module.in_features != 2 * module.out_features:
        return False
    weight = module.linear.weight
    halves = torch.eye(module.out_features, device=weight.device, dtype=weight.dtype).repeat(1, 2) / 2
    return isinstance(module.activation_function, torch.nn.Identity) and torch.equal(weight, halves)


def _is_fixed_ends(module: nn.Module) -> bool:
    """Return whether it is the weighting of `first_last_avg`."""
    from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling

    if not isinstance(module, WeightedLayerPooling) or module.layer_start != 1:
        return False
    weights = module.layer_weights.tolist()
    return weights[0] == weights[-1] == 1.0 and not any(weights[1:-1])
