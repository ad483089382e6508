"""What a model must be, checked as it is loaded: a mismatch would otherwise give wrong figures in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError
from angle_train.model.roles import PAIR, input_modules, router_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def admit(model: SentenceTransformer, name: str) -> None:
    """Refuse routes that lead nowhere, and watch for tokens that a model has no embedding of.

    Raises:
        InputError: It is asymmetric, and has no route for queries or for documents.
    """
    router = router_of(model)
    for role in PAIR if router is not None else ():
        try:
            model.preprocess(["a"], task=role)
        except ValueError:
            routes = " and ".join(router.sub_modules) if router is not None else ""
            raise InputError(
                f"{name} is asymmetric (Router, with routes {routes}), and none takes texts as a {role}; its "
                "routes must be query and document"
            ) from None
    for module in input_modules(model):
        _watch_tokens(module, name)


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


def _watch_tokens(module: Any, name: str) -> None:
    """Let texts be refused that have tokens without an embedding, where a module tokenises for a transformer.

    Such tokens were added to a tokenizer alone; torch says no more than that an index is out of range.
    """
    from sentence_transformers.base.modules import Transformer

    if not isinstance(module, Transformer) or module.tokenizer is None:
        return
    tokenizer: Any = module.tokenizer
    rows = getattr(module.model.get_input_embeddings(), "num_embeddings", None)
    preprocess: Any = module.preprocess
    if rows is not None and len(tokenizer) > rows and not isinstance(preprocess, partial):
        watched: Any = module
        watched.preprocess = partial(_with_known_tokens, preprocess, tokenizer, rows, name)


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
