"""The smallest model whose output must not depend on padding, and batches for it."""

import torch
from torch import nn

from angle_train.objective.batches import PairCollator
from angle_train.recipe import Recipe
from angle_train.training.presets import PRESETS


class LetterModel(nn.Module):
    """Mean of letter embeddings; notes the shape of every chunk and whether its gradient is wanted."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.letters = nn.Embedding(128, 8)
        self.calls = []

    def forward(self, features):
        ids = features["input_ids"]
        self.calls.append((tuple(ids.shape), torch.is_grad_enabled()))
        mask = (ids > 0).float()[:, :, None]
        return {"sentence_embedding": (self.letters(ids) * mask).sum(1) / mask.sum(1)}


def spelled(texts, prompt=None):
    """A tokeniser that keeps the characters: code points padded with 0 to the chunk's longest text."""
    width = max(len(text) for text in texts)
    return {"input_ids": torch.tensor([[ord(c) for c in t] + [0] * (width - len(t)) for t in texts])}


def collator(preprocess=spelled, *, chunking="fixed", prompt=None, process=0, processes=1, **values):
    """A collator for a recipe of the papers' terms with these values, without swaps unless they say so."""
    recipe = Recipe().with_overrides(PRESETS["papers"] | {"swap": False} | values)
    return PairCollator(preprocess, recipe, chunking, prompt, process, processes)


def batch_of(rows, preprocess=spelled, **options):
    """Chunks and labels of `rows`, as the trainer hands them to the loss."""
    batch = collator(preprocess, **options)(rows)
    labels = batch.pop("label")
    chunks = {}
    for name, value in batch.items():
        chunk, _, field = name.partition("_")
        chunks.setdefault(chunk, {})[field] = value
    return [chunks[name] for name in sorted(chunks)], labels


def papers(**values):
    """The papers' three terms, but for `values`: an objective with nothing left open."""
    return Recipe().with_overrides(PRESETS["papers"] | values).objective
