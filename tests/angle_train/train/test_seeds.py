"""What a seed decides: the order of the pairs, the swaps, and what dropout leaves out."""

import json

import pytest

from angle_train.data.pairs import PairSet, load_pairs
from angle_train.recipe import Recipe
from angle_train.train import trainer
from angle_train.train.trainer import DevEvaluator, train


@pytest.fixture(scope="module")
def pairs(examples, tmp_path_factory) -> PairSet:
    lines = (examples / "eval_natural.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("split") == "dev"]
    path = tmp_path_factory.mktemp("seeds") / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows[:24])))
    return load_pairs(str(path))


@pytest.fixture
def first_step(tiny_model_dir, pairs, tmp_path, monkeypatch):
    """What a run of one step saw: batches in their order, which texts came first, and the loss terms."""

    def run(seed, dropout=0.1, **settings):
        from sentence_transformers import SentenceTransformer

        seen, swaps = [], []
        make = trainer.make_collator

        def collator(model, recipe):
            collate = make(model, recipe)

            class Watching:
                valid_label_columns = collate.valid_label_columns

                def __call__(self, rows):
                    seen.append([(row["text1"], row["text2"]) for row in rows])
                    batch = collate(rows)
                    label = batch["label"]
                    swaps.append((label["first"] > label["second"]).tolist())
                    return batch

            return Watching()

        monkeypatch.setattr(trainer, "make_collator", collator)
        rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        model = SentenceTransformer(str(tiny_model_dir), device="cpu", config_kwargs=rates)
        recipe = Recipe().with_overrides(
            {"epochs": 0.3, "batch_size": 8, "evals_per_epoch": 1, "seed": seed, **settings}
        )
        out = tmp_path / f"{seed}-{len(list(tmp_path.iterdir()))}"
        done = train(model, pairs, recipe, out, evaluator=DevEvaluator([pairs]))
        monkeypatch.undo()
        return seen[0], swaps[0], done.curve[0].terms

    return run


def test_seeds_vary_order_swaps_and_dropout(first_step, pairs):
    again = first_step(1)
    assert first_step(1) == again
    batch, swaps, _ = again
    other_batch, other_swaps, _ = first_step(2)
    assert sorted(batch) != sorted(other_batch)
    assert swaps != other_swaps
    # With all pairs in one batch and none swapped, dropout is all that is left to vary.
    whole = {"batch_size": len(pairs), "epochs": 1, "swap": False}
    one, other = first_step(1, **whole), first_step(2, **whole)
    assert sorted(one[0]) == sorted(other[0])
    assert one[2] != other[2]
    calm = [first_step(seed, dropout=0.0, **whole)[2] for seed in (1, 2)]
    assert calm[0] == pytest.approx(calm[1], abs=1e-4)
