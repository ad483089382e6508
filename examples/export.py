"""Make a tuned model lighter to serve, and measure what that costs: ONNX, or a static model (model2vec).

    python examples/export.py onnx --model runs/model --out runs/onnx --pairs my-test.csv
    python examples/export.py static --model runs/model --out runs/static --pairs my-test.csv

onnx: `model.onnx` (token ids and mask in, embeddings out) and `tokenizer.json`; onnxruntime and tokenizers
serve it, without torch. Needs: pip install onnx onnxruntime onnxscript
static: a Sentence Transformers model that adds up one vector for each token. It runs no transformer, and does
not see the order of the words. Needs: pip install "model2vec[distill]"

Both print Spearman x 100 on --pairs for the model and for what was made of it.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from angle_data.errors import AngleError
from angle_train.data.pairs import PairSet, load_pairs
from angle_train.evaluation.statistics import spearman

LARGEST_DIFFERENCE = 1e-4
"""Of a cosine in ONNX; more is an error of the export, not rounding."""
Encode = Callable[[Sequence[str]], np.ndarray[Any, Any]]


class Embeddings(torch.nn.Module):
    """A model as a function of token ids and mask alone."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the embeddings (B, D) of token ids (B, T) with their mask (B, T)."""
        features = {"input_ids": input_ids, "attention_mask": attention_mask}
        return self.model(features)["sentence_embedding"]


def export_onnx(model: SentenceTransformer, out: Path) -> Encode:
    """Write `model.onnx` and `tokenizer.json`; return what encodes with them."""
    out.mkdir(parents=True, exist_ok=True)
    backend = model.tokenizer.backend_tokenizer
    backend.enable_truncation(model.max_seq_length)
    backend.enable_padding(
        direction=model.tokenizer.padding_side,
        pad_id=model.tokenizer.pad_token_id,
        pad_token=model.tokenizer.pad_token,
    )
    backend.save(str(out / "tokenizer.json"))
    example = model.tokenizer(["a text", "another, longer text"], padding=True, return_tensors="pt")
    shape = {0: torch.export.Dim("texts"), 1: torch.export.Dim("tokens")}
    torch.onnx.export(
        Embeddings(model).eval(),
        (example["input_ids"], example["attention_mask"]),
        out / "model.onnx",
        input_names=["input_ids", "attention_mask"],
        output_names=["embeddings"],
        dynamic_shapes=(shape, shape),
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    return onnx_encoder(out)


def onnx_encoder(folder: Path) -> Encode:
    """Return what encodes texts with an exported model: this is all that serving needs."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    session = onnxruntime.InferenceSession(folder / "model.onnx")

    def encode(texts: Sequence[str]) -> np.ndarray[Any, Any]:
        found = []
        for start in range(0, len(texts), 64):
            rows = tokenizer.encode_batch(list(texts[start : start + 64]))
            given = {
                "input_ids": np.array([row.ids for row in rows]),
                "attention_mask": np.array([row.attention_mask for row in rows]),
            }
            found.append(session.run(["embeddings"], given)[0])
        return np.concatenate(found)

    return encode


def export_static(model: SentenceTransformer, folder: Path, out: Path) -> Encode:
    """Write a static model of a saved model; return what encodes with it."""
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    width = model.get_embedding_dimension()
    made = StaticEmbedding.from_distillation(str(folder), device="cpu", pca_dims=min(256, width or 256))
    SentenceTransformer(modules=[made], device="cpu").save_pretrained(str(out), create_model_card=False)
    return SentenceTransformer(str(out), device="cpu").encode


def cosines(encode: Encode, pairs: PairSet) -> np.ndarray[Any, Any]:
    """Return the cosine of each pair."""
    one, other = (np.asarray(encode(list(texts)), dtype=np.float64) for texts in (pairs.text1, pairs.text2))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(axis=1) / np.maximum(lengths, 1e-12)


def export(kind: str, folder: Path, out: Path, pairs: PairSet) -> dict[str, float]:
    """Export a model; return Spearman x 100 before and after, and the largest difference of a cosine."""
    model = SentenceTransformer(str(folder), device="cpu")
    if model.default_prompt_name:
        sys.exit("export.py: error: this model puts a prompt before each text, which the export would lose")
    before = cosines(model.encode, pairs)
    encode = export_onnx(model, out) if kind == "onnx" else export_static(model, folder, out)
    after = cosines(encode, pairs)
    return {
        "before": 100 * spearman(pairs.score, before),
        "after": 100 * spearman(pairs.score, after),
        "difference": float(np.abs(after - before).max()),
    }


def main() -> None:
    """Export, print the figures, and refuse an ONNX model that computes something else."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("onnx", "static"))
    for option in ("--model", "--out"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument("--pairs", required=True, help="scored pairs to measure on")
    given = parser.parse_args()
    try:
        found = export(given.kind, given.model, given.out, load_pairs(given.pairs))
    except AngleError as error:
        sys.exit(f"export.py: error: {error}")
    except ImportError as error:
        sys.exit(f"export.py: error: {error.name} is not installed; --help says what this needs")
    print(f"Spearman {found['before']:.2f} before, {found['after']:.2f} after")
    print(f"largest difference of a cosine: {found['difference']:.1e}")
    if given.kind == "onnx" and found["difference"] > LARGEST_DIFFERENCE:
        sys.exit(
            f"export.py: error: the cosines differ by more than {LARGEST_DIFFERENCE}: do not use this export"
        )


if __name__ == "__main__":
    main()
