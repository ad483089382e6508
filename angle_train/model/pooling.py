"""From the token embeddings of a text to one embedding, by the module that Sentence Transformers brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angle_data.errors import InputError
from angle_train.recipe import CHECKPOINT

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules.pooling import PoolingMode

POOLINGS: dict[str, PoolingMode] = {
    "cls": "cls",
    "last-avg": "mean",
    "last-max": "max",
    "last-token": "lasttoken",
}
"""Name, as in AnglE Table 4 -> name of Sentence Transformers.

`cls` takes the first token, `last-token` the last one that is no padding: the only one that has seen the
whole text in a causal model. `last-avg` and `last-max` take mean and maximum over the last layer's tokens.
"""


def set_pooling(model: SentenceTransformer, name: str) -> None:
    """Replace how `model` pools, by a key of `POOLINGS`.

    What follows its pooling (normalisation, a trained layer) stays.

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
            f"pooling {name} needs a transformer followed by a pooling, which this backbone is not; set "
            f"pooling = {CHECKPOINT}"
        )
    if name == "cls" and is_causal(model):
        raise InputError(
            f"pooling {name} reads the first token, which in a causal language model does not see the "
            "text after it; set pooling = last-token"
        )
    pooling = Pooling(modules[0].get_embedding_dimension(), POOLINGS[name])
    del model[1:]
    for module in (pooling, *modules[at + 1 :]):
        model.append(module.to(model.device))


def is_causal(model: SentenceTransformer) -> bool:
    """Return whether tokens see only those before them; BERT can be built so too, and some LLMs are not."""
    transformer = model.transformers_model
    if transformer is None or not getattr(transformer.config, "is_causal", True):
        return False
    return any(getattr(module, "is_causal", False) is True for module in transformer.modules())
