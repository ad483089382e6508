"""Runs `mteb` on a model of ours as it was trained: its prompt, its way with long texts, each text once.

    import mteb
    from angle_train.evaluate.mteb_adapter import MtebModel

    mteb.evaluate(MtebModel("model"), tasks=mteb.get_tasks(tasks=["STSBenchmark"]))

mteb can load the directory by itself, which is right for models without a prompt that cut long texts. For
others it is not. What `long_text.json` says is known to `backbones` alone. And on tasks with queries and
documents mteb asks for the prompts `query` and `document`, which Sentence Transformers saves as empty texts
in every model, so the prompt that all training texts had is left out there; here each text gets it in every
task. mteb is not needed to import this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from angle_train.evaluate.embedding import Embedder, embedding_file
from angle_train.model.load import load_backbone


class MtebModel:
    """A model as mteb's `EncoderProtocol` wants it (mteb 2).

    Args:
        model_name: Directory or hub id.
        revision: Not used; mteb passes one.
        device: `cpu`, `cuda` …; default the best there is.
        cache: Folder that keeps embeddings for later runs; default in memory alone.
        batch_size: Texts in one forward pass; mteb's own setting is not used.

    Raises:
        InputError: The model cannot be loaded.
    """

    def __init__(
        self,
        model_name: str,
        revision: str | None = None,
        *,
        device: str | None = None,
        cache: Path | None = None,
        batch_size: int = 32,
    ) -> None:
        self._model = load_backbone(model_name, device=device)
        file = embedding_file(cache, model_name, self._model) if cache else None
        self._embed = Embedder(self._model, model_name, file, batch_size)

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb writes into its results about the model."""
        from mteb.models import ModelMeta

        return ModelMeta.from_sentence_transformer_model(self._model)

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **kwargs: Any,
    ) -> NDArray[np.float32]:
        """Return the embeddings (N, D) of all texts in mteb's batches, in their order.

        Task, split and type of prompt make no difference: the model has one prompt, or none.
        """
        return self._embed([text for batch in inputs for text in batch["text"]])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the similarities (N, M) of all rows of one matrix with all of the other."""
        return self._model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the similarity (N,) of each row with the same row of the other matrix."""
        return self._model.similarity_pairwise(embeddings1, embeddings2)
