"""The routes of an asymmetric model (Router) before training: what is refused, and which train as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError
from angle_train.model.roles import router_of
from angle_train.recipe import CHECKPOINT, BackboneConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def prepare_routes(model: SentenceTransformer, name: str, config: BackboneConfig) -> bool:
    """Make the routes of an asymmetric model ready for training, in place; nothing changes in others.

    Return whether routes train as one that came apart.

    Raises:
        InputError: The config asks for what is only done to a model of one encoder.
    """
    if router_of(model) is None:
        return False
    asked = {
        "lora_rank": config.lora_rank,
        "frozen_layers": config.layers_frozen,
        "pooling": config.pooling != CHECKPOINT,
    }
    for key in (key for key, given in asked.items() if given):
        default = CHECKPOINT if key == "pooling" else 0
        raise InputError(
            f"{name} is asymmetric (Router): {key} is for models with one encoder; set {key} = {default}"
        )
    return tie_equal_routes(model)


def tie_equal_routes(model: SentenceTransformer) -> bool:
    """Let routes that are equal share their modules, in place, and return whether any do now.

    Two encoders that begin with the same weights would drift apart in training, and the same text would no
    longer be one point as a query and as a document (benchmarks/log/router.md). Routes that differ are left
    alone. A saved model with shared modules has them in one folder, and opens so again.
    """
    router = router_of(model)
    if router is None:
        return False
    routes: Any = router.sub_modules
    names = list(routes)
    tied = False
    for place, name in enumerate(names):
        twin = next((other for other in names[:place] if _equal(routes[other], routes[name])), None)
        if twin is not None:
            shared = all(a is b for a, b in zip(routes[twin], routes[name], strict=True))
            routes[name] = routes[twin]
            tied = tied or not shared
    return tied


def _equal(first: Any, second: Any) -> bool:
    """Return whether two routes give every text the same embedding."""
    return len(first) == len(second) and all(
        a is b or (_settings(a) == _settings(b) and _same_weights(a, b))
        for a, b in zip(first, second, strict=True)
    )


def _settings(module: Any) -> tuple[object, ...]:
    """Return what decides beside the weights what a module does."""
    settings = module.get_config_dict() if hasattr(module, "get_config_dict") else None
    network: Any = getattr(module, "model", None)
    shape = network.config.to_dict() if hasattr(network, "config") else None
    tokenizer: Any = getattr(module, "tokenizer", None)
    vocabulary = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else None
    return type(module), settings, shape, vocabulary, getattr(module, "max_seq_length", None)


def _same_weights(first: Any, second: Any) -> bool:
    own, others = first.state_dict(), second.state_dict()
    return own.keys() == others.keys() and all(
        value.shape == others[name].shape and bool((value == others[name]).all())
        for name, value in own.items()
    )
