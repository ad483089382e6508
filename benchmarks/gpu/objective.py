"""Losses and gradients on the device against the same formulas in float64 on the CPU.

First the three terms alone, on random embeddings; then a whole model, as a training computes it: weights in
fp32, the forward pass in fp32, bf16 or fp16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from guard import attempt
from models import bert
from setting import Setting, made_up_texts

_TAU = {"cosine": 0.05, "in-batch": 0.05, "angle": 1.0}
_SCALE = 1024.0  # of the loss in fp16, whose smallest gradients would be 0


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield how far each term, and the gradient of a whole model, are from float64."""
    import torch

    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    for term in _TAU:
        for name, dtype in dtypes.items():
            yield attempt(f"{term}, embeddings in {name}", lambda t=term, d=dtype: _term(setting, t, d))
    exact: list[Any] = []  # of the model, once for all precisions
    for name in setting.pick(list(dtypes), ["fp32", "bf16"]):
        yield attempt(
            f"BERT, cosine term, {name}", lambda n=name, d=dtypes[name]: _whole_model(setting, n, d, exact)
        )


def _batch(pairs: int) -> tuple[Any, Any]:
    """Return random embeddings (2·pairs, 768), of which pair i has the rows 2·i and 2·i + 1, and scores."""
    import torch

    generator = torch.Generator().manual_seed(0)
    anchors = torch.randn(pairs, 768, generator=generator, dtype=torch.float64)
    noise = torch.randn(pairs, 768, generator=generator, dtype=torch.float64)
    embeddings = torch.stack([anchors, anchors + 3 * noise], dim=1).flatten(0, 1)
    return embeddings, torch.arange(pairs) % 6 / 5


def _ours(term: str, embeddings: Any, score: Any) -> Any:
    """Return a term of the toolkit."""
    import torch

    from angle_train.objective.terms import in_batch_objective, not_negatives, ranking_objective

    device, tau = embeddings.device, _TAU[term]
    first = torch.arange(0, len(embeddings), 2, device=device)
    second, score = first + 1, score.to(device)
    if term != "in-batch":
        kind = {"cosine": "cosine", "angle": "symmetric"}[term]
        return ranking_objective(embeddings[first], embeddings[second], score, kind, tau=tau)
    positive = score >= 0.8
    none = torch.empty(0, dtype=torch.long, device=device)
    groups = torch.arange(len(embeddings), device=device)
    groups[second[positive]] = groups[first[positive]]
    excluded = not_negatives(groups, none, none)
    return in_batch_objective(embeddings, first, second, positive, excluded, tau=tau)


def _exactly(term: str, embeddings: Any, score: Any) -> Any:
    """Return the same term as the papers write it, with sums over all pairs of pairs."""
    import torch

    unit = torch.nn.functional.normalize(embeddings, dim=-1)
    one, other, tau = unit[0::2], unit[1::2], _TAU[term]
    cosine = (one * other).sum(-1)
    if term == "in-batch":
        positive = (score >= 0.8).nonzero().flatten().tolist()
        logits = unit @ unit.T / tau
        parts = []
        for pair in positive:
            for text, partner in ((2 * pair, 2 * pair + 1), (2 * pair + 1, 2 * pair)):
                negatives = [n for n in range(len(unit)) if n // 2 != pair]
                parts.append(logits[text, [partner, *negatives]].logsumexp(0) - logits[text, partner])
        return torch.stack(parts).mean()
    similarity = cosine
    if term == "angle":
        similarity = 1 - 4 / math.pi * torch.atan2((one - other).norm(dim=-1), (one + other).norm(dim=-1))
    higher = score[:, None] > score[None, :]  # (i, j): pair i should be more similar than pair j
    differences = (similarity[None, :] - similarity[:, None])[higher] / tau
    return torch.cat([differences.new_zeros(1), differences]).logsumexp(0)


def _term(setting: Setting, term: str, dtype: Any) -> dict[str, Any]:
    """Return the errors of one term, whose reference has the embeddings as `dtype` holds them."""
    import torch

    embeddings, score = _batch(64)
    rounded = embeddings.to(dtype)
    exact_in = rounded.double().requires_grad_()
    exact = _exactly(term, exact_in, score)
    exact.backward()
    ours_in = rounded.to(setting.device).requires_grad_()
    ours = _ours(term, ours_in, score)
    scale = _SCALE if dtype is torch.float16 else 1.0
    (scale * ours).backward()
    return _errors(ours, exact, ours_in.grad.double() / scale, exact_in.grad)


def _whole_model(setting: Setting, name: str, dtype: Any, exact: list[Any]) -> dict[str, Any]:
    """Return the errors of loss and gradient of all weights, dropout off."""
    import torch
    from sentence_transformers.util import batch_to_device

    from angle_train.model.load import load_backbone

    texts = made_up_texts(setting.pick(16, 8))
    score = torch.arange(len(texts) // 2) % 6 / 5

    def gradient(model: Any, term: Callable[..., Any], scale: float = 1.0) -> tuple[Any, Any]:
        features = batch_to_device(model.preprocess(texts), model.device)
        half = dtype is not torch.float32 and term is _ours
        with torch.autocast(model.device.type, dtype=dtype if half else torch.bfloat16, enabled=half):
            loss = term("cosine", model(features)["sentence_embedding"], score)
        (scale * loss).backward()
        found = [p.grad.flatten().double().cpu() for p in model.parameters() if p.grad is not None]
        return loss, torch.cat(found) / scale

    if not exact:
        exact += gradient(load_backbone(str(bert(setting)), device="cpu").double().eval(), _exactly)
    model = load_backbone(str(bert(setting)), device=setting.device).float().eval()
    loss, found = gradient(model, _ours, _SCALE if name == "fp16" else 1.0)
    return _errors(loss, exact[0], found, exact[1])


def _errors(loss: Any, exact: Any, gradient: Any, exact_gradient: Any) -> dict[str, Any]:
    """Return relative errors; a number that is none stays one."""
    import torch

    gradient = gradient.double().cpu().flatten()
    exact_gradient = exact_gradient.double().flatten()
    off = (gradient - exact_gradient).norm() / exact_gradient.norm()
    cosine = torch.nn.functional.cosine_similarity(gradient, exact_gradient, dim=0)
    return {
        "loss_error": float(abs(loss.double().cpu() - exact) / abs(exact)),
        "gradient_error": float(off),
        "gradient_cosine": float(cosine),
    }
