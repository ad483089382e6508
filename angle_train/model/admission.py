"""What a model must be, checked as it is loaded: a mismatch would otherwise give wrong figures in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def admit(model: SentenceTransformer, name: str) -> None:
    """Refuse a model with several routes, and watch for tokens that a model has no embedding of.

    Raises:
        InputError: It is asymmetric: queries and documents go through different encoders, of which everything
            here would train and measure one.
    """
    from sentence_transformers.base.modules import Router

    for module in model:
        if isinstance(module, Router):
            routes = " and ".join(module.sub_modules)
            raise InputError(
                f"{name} is asymmetric (Router, with routes {routes}): only one of them would be trained and "
                "measured; train it with AngleLoss in a SentenceTransformerTrainer, or give a model with one"
            )
    _watch_tokens(model, name)


def check_cosine(model: SentenceTransformer, name: str) -> None:
    """Raise an InputError if a model compares by more than the direction of its embeddings.

    Of embeddings of length 1 the dot product is the cosine, and distances rank as it does, but for manhattan.
    """
    from sentence_transformers.base.modules import Normalize

    by = str(model.similarity_fn_name)
    normalised = any(isinstance(module, Normalize) for module in model)
    if by == "cosine" or (normalised and by in ("dot", "euclidean")):
        return
    raise InputError(
        f"{name} compares embeddings by {by}, and only the cosine is trained and measured here; if that "
        'will do, set "similarity_fn_name": "cosine" in its config_sentence_transformers.json'
    )


def _watch_tokens(model: SentenceTransformer, name: str) -> None:
    """Let texts be refused that have tokens without an embedding.

    Such tokens were added to a tokenizer alone; torch says no more than that an index is out of range.
    """
    transformer = model.transformers_model
    tokenizer: Any = getattr(model, "tokenizer", None)
    if transformer is None or tokenizer is None:
        return
    rows = getattr(transformer.get_input_embeddings(), "num_embeddings", None)
    first: Any = model[0]
    if rows is not None and len(tokenizer) > rows and not isinstance(first.preprocess, partial):
        first.preprocess = partial(_with_known_tokens, first.preprocess, tokenizer, rows, name)


def _with_known_tokens(
    preprocess: Callable[..., Mapping[str, Any]],
    tokenizer: Any,
    rows: int,
    name: str,
    *given: Any,
    **more: Any,
) -> Mapping[str, Any]:
    """Return what `preprocess` returns, if the model has an embedding of every token."""
    found = preprocess(*given, **more)
    highest = int(found["input_ids"].max()) if found["input_ids"].numel() else 0
    if highest >= rows:
        token = tokenizer.convert_ids_to_tokens(highest)
        raise InputError(
            f"{name}: its tokenizer gives token {highest} ({token!r}), its weights hold embeddings for "
            f"{rows}; call resize_token_embeddings(len(tokenizer)) on the transformer and save it again"
        )
    return found
