"""The routes of an asymmetric model (Router) before training: what is refused, and which train as one."""

from __future__ import annotations

import json
from pathlib import Path
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
    alone, and so are those of which only one is to be trained. The modules of the later one leave the model.
    A saved model with shared modules has them in one folder, and opens so again.
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
    """Return what decides beside the weights what a module does, and which of these are trained."""
    settings = module.get_config_dict() if hasattr(module, "get_config_dict") else None
    network: Any = getattr(module, "model", None)
    shape = network.config.to_dict() if hasattr(network, "config") else None
    trained = [(name, value.requires_grad) for name, value in module.named_parameters()]
    length = getattr(module, "max_seq_length", None)
    return type(module), settings, shape, trained, length, _rules(getattr(module, "tokenizer", None))


def _rules(tokenizer: Any) -> object:
    """Return what decides how a tokenizer cuts a text; one that does not say is equal to none but itself."""
    if tokenizer is None:
        return None
    reader = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(reader, "to_str"):
        return tokenizer
    state = ("truncation", "padding")  # of the last call
    rules = {part: value for part, value in json.loads(reader.to_str()).items() if part not in state}
    return rules, *(getattr(tokenizer, f"{end}_side", None) for end in state)


def _same_weights(first: Any, second: Any) -> bool:
    own, others = first.state_dict(), second.state_dict()
    return own.keys() == others.keys() and all(
        value.shape == others[name].shape and bool((value == others[name]).all())
        for name, value in own.items()
    )


def check_routes_of(checkpoint: Path, model: SentenceTransformer) -> None:
    """Raise an InputError if the run that left a checkpoint shared other routes than this one does.

    Runs of earlier versions trained equal routes apart: their steps cannot be gone on with.
    """
    router, file = router_of(model), next(checkpoint.rglob("router_config.json"), None)
    if router is None or file is None:
        return
    routes: Any = router.sub_modules
    structure = json.loads(file.read_text(encoding="utf-8"))["structure"]
    there = {name for modules in structure.values() for name in modules}
    if len(there) != len({id(module) for route in routes.values() for module in route}):
        raise InputError(
            f"{checkpoint}: the run that was cut off here shared other routes than this one "
            "(earlier versions trained equal routes apart); start anew (--overwrite), or take another folder"
        )
