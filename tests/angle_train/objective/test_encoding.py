"""From chunks to embeddings: gradient caching, several processes, sparse lookups, and the same gradients."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from letter_model import LetterModel, batch_of, papers
from process_runs import run_program
from sentence_transformers import SentenceTransformer
from train_runs import pair_set

from angle_train.objective.loss import CombinedLoss, encode_cached, sparse_lookups
from angle_train.recipe import Recipe, TrainingConfig
from angle_train.training import trainer
from angle_train.training.presets import settle
from angle_train.training.trainer import DevEvaluator, train

PROGRAM = Path(__file__).with_name("two_processes.py")
SENTENCES = [
    ("disk full", "no space left on the volume", 1.0),
    ("disk full", "the disk was replaced by an empty one", 0.0),
    ("node rebooted", "the host was restarted", 1.0),
    ("node rebooted", "disk full", 0.0),
    ("the pod was evicted", "kubernetes removed a container from the node", 0.9),
    ("certificate expired last night", "tls handshake fails", 0.6),
]
ROWS = [{"text1": a, "text2": b, "score": score} for a, b, score in SENTENCES]
ALL_TERMS = papers(matryoshka_dims=(16,), transitive=True)


def tiny_batch(model, rows=ROWS, chunk_size=3, config=ALL_TERMS):
    return batch_of(rows, model.preprocess, chunk_size=chunk_size, transitive=config.transitive)


def gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def step(model, cached, config=ALL_TERMS, scale=1.0, context=nullcontext, steps=1, chunk_size=3):
    """Terms, gradients and the random number that comes next after `steps` accumulated backward passes."""
    torch.manual_seed(7)
    model.train().zero_grad()
    chunks, labels = tiny_batch(model, chunk_size=chunk_size)
    loss = CombinedLoss(model, config, gradient_cache=cached)
    for _ in range(steps):
        with context():
            terms = loss(chunks, labels)
            total = torch.stack(list(terms.values())).sum()
        (total * scale).backward()
    return {name: term.item() for name, term in terms.items()}, gradients(model), torch.rand(1).item()


def assert_equal_steps(plain, cached, tolerance=1e-5):
    assert cached[0] == {name: pytest.approx(value, rel=tolerance) for name, value in plain[0].items()}
    assert plain[1].keys() == cached[1].keys()
    for name, gradient in plain[1].items():
        torch.testing.assert_close(cached[1][name], gradient, rtol=tolerance, atol=tolerance)
    assert cached[2] == plain[2]  # what is random after the step does not change either


@pytest.mark.parametrize(
    "config",
    [
        ALL_TERMS,
        papers(in_batch_weight=0, angle_weight=0),
        papers(cosine_weight=0, angle_weight=0, isp="none"),
        papers(cosine_weight=0, in_batch_weight=0, angle_mode="published"),
    ],
    ids=["all", "cosine", "in_batch", "published"],
)
def test_cached_step_equals_the_plain_one_with_dropout(tiny_model, config):
    plain, cached = step(tiny_model, False, config), step(tiny_model, True, config)
    assert_equal_steps(plain, cached)
    tiny_model.eval()
    still = CombinedLoss(tiny_model, config)(*tiny_batch(tiny_model, config=config))
    # Dropout was on: without it the terms are others.
    assert all(value != pytest.approx(still[name].item(), rel=1e-4) for name, value in plain[0].items())


@pytest.mark.parametrize("whole", [False, True], ids=["forward", "forward and backward"])
def test_mixed_precision_is_repeated(tiny_model, whole):
    # The context covers the forward pass alone, as in the trainer, or the backward pass too.
    def bf16():
        return torch.autocast("cpu", torch.bfloat16)

    def outer():
        return bf16() if whole else nullcontext()

    for chunk_size, tolerance in ((100, 1e-6), (3, 1e-3)):
        with outer():
            plain = step(tiny_model, False, context=bf16, chunk_size=chunk_size)
            cached = step(tiny_model, True, context=bf16, chunk_size=chunk_size)
        assert cached[0] == {name: pytest.approx(value, rel=1e-6) for name, value in plain[0].items()}
        # Without the cache the chunks' gradients of a weight are added up in bf16.
        ours, theirs = (torch.cat([g.flatten() for g in run[1].values()]) for run in (cached, plain))
        assert (ours - theirs).norm().item() <= tolerance * theirs.norm().item()
    exact = step(tiny_model, False, chunk_size=100)
    ours, theirs = (torch.cat([g.flatten() for g in run[1].values()]) for run in (exact, plain))
    assert (ours - theirs).norm().item() > 1e-4 * theirs.norm().item()  # it was bf16


def test_without_gradients_it_only_encodes(tiny_model):
    chunks, _ = tiny_batch(tiny_model.eval())
    with torch.no_grad():
        embeddings = encode_cached(tiny_model, chunks)
        expected = torch.cat([tiny_model(dict(chunk))["sentence_embedding"] for chunk in chunks])
    assert not embeddings.requires_grad
    torch.testing.assert_close(embeddings, expected)


class Saved:
    """Counts the bytes that autograd holds for backward passes after the forward one."""

    def __init__(self):
        self.now = self.peak = 0

    def hooks(self):
        meter = self

        class Held:
            def __init__(self, tensor):
                self.tensor = tensor.detach()  # with its graph, an output would hold itself
                meter.now += tensor.nbytes
                meter.peak = max(meter.peak, meter.now)

            def __del__(self):
                meter.now -= self.tensor.nbytes

        return torch.autograd.graph.saved_tensors_hooks(Held, lambda held: held.tensor)


def peak(model, cached, count, rows):
    """Bytes held at the worst moment of a step on `count` chunks of equally long texts."""
    saved, texts = Saved(), len({text for row in rows for text in (row["text1"], row["text2"])})
    chunks, labels = tiny_batch(model, rows, chunk_size=texts // count, config=papers())
    assert len(chunks) == count
    with saved.hooks():
        sum(CombinedLoss(model, papers(), gradient_cache=cached)(chunks, labels).values()).backward()
    assert saved.now == 0
    return saved.peak


def test_activations_of_one_chunk_are_held_at_a_time(tiny_model):
    words = [f"{a}{b}" for a in "abcdefgh" for b in "ijklmnop"]
    rows = [
        {"text1": f"{a} disk is full now", "text2": f"{a} disk is gone now", "score": float(n % 2)}
        for n, a in enumerate(words)
    ]
    tiny_model.train()
    plain, cached = peak(tiny_model, False, 8, rows), peak(tiny_model, True, 8, rows)
    # An eighth of the activations, and the objective's own tensors, which are small.
    assert cached < plain / 6
    assert peak(tiny_model, True, 16, rows) < plain / 9


def test_every_chunk_but_the_last_is_encoded_once_more_from_the_last_to_the_first():
    model = LetterModel()
    chunks = [{"input_ids": torch.randint(1, 128, (n, 3))} for n in (4, 3, 2)]
    encode_cached(model, chunks).square().sum().backward()
    assert [set(chunk) for chunk in chunks] == [{"input_ids"}] * 3
    assert [shape[0] for shape, _ in model.calls] == [4, 3, 2, 3, 4]


# --- several processes: two train like one -----------------------------------------------------------

NAMES = ["plain", "everything", "cached", "accumulated", "several scales", "fewer texts than processes"]


@pytest.fixture(scope="module")
def found(tiny_model_dir, tmp_path_factory):
    """What one process and each of two found: {"single" | "rank0" | "rank1": {scenario: results}}."""
    out = tmp_path_factory.mktemp("processes")
    run_program(PROGRAM, tiny_model_dir, out)
    return {name: torch.load(out / f"{name}.pt") for name in ("single", "rank0", "rank1")}


def largest_difference(one, other):
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def test_the_processes_share_the_texts_and_one_may_have_fewer_or_none(found):
    assert [list(found[who])[: len(NAMES)] for who in found] == [NAMES] * 3
    texts = {who: found[who]["fewer texts than processes"]["texts"] for who in found}
    assert texts == {
        "single": [1, 9, 10, 3, 1],
        "rank0": [1, 5, 5, 2, 1],
        # 1 for a batch of one text: who has none encodes one for nothing, so that all take part in the step.
        "rank1": [1, 5, 5, 1, 1],
    }


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_train_like_one_and_report_the_loss_of_the_whole_batch(found, name, tiny_model):
    single, rank0, rank1 = (found[who][name]["parameters"] for who in ("single", "rank0", "rank1"))
    before = {parameter: value.detach() for parameter, value in tiny_model.named_parameters()}
    assert largest_difference(rank0, rank1) == 0.0
    assert largest_difference(rank0, single) <= 1e-6
    assert largest_difference(single, before) > 5e-3
    single, rank0, rank1 = (found[who][name]["terms"] for who in ("single", "rank0", "rank1"))
    assert rank0 == rank1 == [pytest.approx(terms, rel=1e-5) for terms in single]


def test_cached_gradients_are_synchronised_once_a_step(found):
    counts = {name: found["rank0"][name]["synchronised"] for name in ("everything", "cached", "accumulated")}
    assert counts["everything"] >= 3  # steps
    assert counts["cached"] == counts["everything"]
    assert 3 * counts["accumulated"] == 2 * counts["everything"]  # four batches in two steps


@pytest.mark.parametrize("rank", ["rank0", "rank1"])
def test_batches_that_were_not_made_for_the_processes_are_refused(found, rank):
    assert found[rank]["refusal"].startswith("the batch is not divided among 2 processes")


# --- sparse lookups ------------------------------------------------------------------------------------

TEXTS = [["the disk is full", "a node"], ["the host was restarted"], ["a cable is loose", "the disk is full"]]


def lookup_gradient(model):
    model.eval()
    model.zero_grad()
    for _ in range(2):  # twice, as gradient accumulation does
        chunks = [model(model.preprocess(texts))["sentence_embedding"] for texts in TEXTS]
        torch.cat(chunks).sin().sum().backward()
    weight = model.transformers_model.get_input_embeddings().weight
    assert not weight.grad.is_sparse
    return weight.grad


def test_the_gradient_is_the_same_and_dense(tiny_model):
    plain = lookup_gradient(tiny_model).clone()
    embeddings, seen = tiny_model.transformers_model.get_input_embeddings(), []
    with sparse_lookups(tiny_model):
        tiny_model(tiny_model.preprocess(["a disk"]))["sentence_embedding"].sum().backward()
        assert not embeddings.weight.grad.is_sparse
        handle = embeddings.weight.register_hook(lambda grad: seen.append(grad.is_sparse))
        collected = lookup_gradient(tiny_model).clone()
        handle.remove()
    assert seen == [True, True]  # one sum for each backward pass, sparse until then
    torch.testing.assert_close(collected, plain)
    assert plain.abs().max() > 1e-3
    assert not embeddings.sparse
    assert torch.equal(lookup_gradient(tiny_model), plain)


def test_frozen_embeddings_are_left_alone(tiny_model):
    embeddings = tiny_model.transformers_model.get_input_embeddings()
    embeddings.requires_grad_(False)
    with sparse_lookups(tiny_model):
        assert not embeddings.sparse


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_adaptive_run_collects_sparse_gradients_and_ends_like_a_fixed_one(
    tiny_model_dir, tmp_path, monkeypatch
):
    texts = ["disk " * n for n in (1, 2, 3, 40, 41, 42)], ["node " * n for n in (2, 1, 4, 40, 42, 45)]
    pairs = pair_set(list(zip(*texts, strict=True)), [1.0, 0.0, 0.5, 0.8, 0.2, 0.0])
    ends, seen = {}, []
    for chunking in ("fixed", "adaptive"):
        model = SentenceTransformer(str(tiny_model_dir), device="cpu")
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        weight = model.transformers_model.get_input_embeddings().weight
        weight.register_hook(lambda grad: seen.append(grad.is_sparse))
        monkeypatch.setattr(trainer, "choose_chunking", lambda model, way=chunking: way)
        config = TrainingConfig(epochs=2, batch_size=6, evals_per_epoch=1, learning_rate=1e-3)
        train(
            model,
            pairs,
            settle(Recipe(training=config), pairs),
            tmp_path / chunking,
            evaluator=DevEvaluator([pairs]),
        )
        ends[chunking] = weight.detach().clone()
    assert seen == [False, False, True, True]
    torch.testing.assert_close(ends["adaptive"], ends["fixed"], rtol=1e-3, atol=1e-5)
