"""Batches: which rows and swaps they have, each distinct text once, chunks, labels of the right texts."""

from itertools import combinations, pairwise

import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from letter_model import collator, spelled

from angle_train.objective.batches import EpochSampler, adaptive_chunks, blocked_order
from angle_train.objective.labels import positive_groups


def decode(batch):
    """The texts of all chunks, in order."""
    names = sorted(name for name in batch if name.endswith("_input_ids"))
    return ["".join(chr(c) for c in row if c) for name in names for row in batch[name].tolist()]


def row(text1, text2, score=1.0, **extra):
    return {"text1": text1, "text2": text2, "score": score, **extra}


def collate(rows, **options):
    return collator(**options)(rows)


def test_every_distinct_text_is_encoded_once_and_indices_point_to_it():
    rows = [row("a", "bbb"), row("a", "cc", 0.0), row("dddd", "bbb", 0.5)]
    batch = collate(rows)
    texts = decode(batch)
    assert texts == ["a", "cc", "bbb", "dddd"]
    label = batch["label"]
    found = [(texts[i], texts[j]) for i, j in zip(label["first"], label["second"], strict=True)]
    assert found == [(r["text1"], r["text2"]) for r in rows]
    assert label["score"].tolist() == [1.0, 0.0, 0.5]


def test_chunks_are_sorted_by_length_and_padded_alone():
    rows = [row("x" * n, "y" * n) for n in (9, 1, 5, 3, 7)]
    batch = collate(rows, chunk_size=4)
    widths = [batch[f"chunk{n:03d}_input_ids"].shape for n in range(3)]
    assert widths == [(4, 3), (4, 7), (2, 9)]
    padded = sum(int((batch[f"chunk{n:03d}_input_ids"] == 0).sum()) for n in range(3))
    assert padded == 2 * (3 - 1) + 2 * (7 - 5)  # one padded matrix of ten texts would waste 2·(8+6+4+2)=40


def test_adaptive_chunks_change_neither_texts_nor_labels():
    rows = [row("x" * n, "y" * (n + 1), score=n / 400) for n in (9, 10, 11, 300, 310, 320, 12)]
    fixed, adaptive = (collate(rows, chunk_size=14, chunking=kind) for kind in ("fixed", "adaptive"))
    assert decode(adaptive) == decode(fixed)
    assert all(torch.equal(adaptive["label"][name], fixed["label"][name]) for name in fixed["label"])
    assert fixed["chunk000_input_ids"].shape == (14, 321)
    assert adaptive["chunk000_input_ids"].shape == (8, 13)  # short texts are not padded to the long ones


@pytest.mark.parametrize(
    ("pairs", "identity", "expected"),
    [
        # (A,B,1) (A,C,1) (B,D,0): A, B, C paraphrases through A; D stands alone.
        ([(0, 1, 1), (0, 2, 1), (1, 3, 0)], [0, 1, 2, 3], [[0, 1, 2], [3]]),
        # (A,B,1) (A',C,1) with A' spelt differently but equal: one group through the equal texts.
        ([(0, 1, 1), (2, 3, 1)], [0, 1, 0, 2], [[0, 1, 2, 3]]),
        # Equal texts in a negative pair are still equal.
        ([(0, 1, 0)], [0, 0], [[0, 1]]),
        # A chain of positives is one group; negatives link nothing.
        ([(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 4, 0)], [0, 1, 2, 3, 4], [[0, 1, 2, 3], [4]]),
        ([(0, 1, 0), (2, 3, 0)], [0, 1, 2, 3], [[0], [1], [2], [3]]),
    ],
)
def test_positive_groups(pairs, identity, expected):
    first, second, positive = (torch.tensor(column) for column in zip(*pairs, strict=True))
    group = positive_groups(first, second, positive.bool(), torch.tensor(identity)).tolist()
    found = {}
    for text, label in enumerate(group):
        found.setdefault(label, []).append(text)
    assert sorted(found.values()) == expected


def test_positive_and_neutral_follow_the_thresholds():
    rows = [
        row("a", "b", 1.0),
        row("c", "d", 0.8),
        row("e", "f", 0.5),
        row("g", "h", 0.2),
        row("i", "j", 0.0),
    ]
    label = collate(rows, positive_score=0.8, negative_score=0.2)["label"]
    assert label["positive"].tolist() == [True, True, False, False, False]
    assert label["neutral"].tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("transitive", [False, True])
def test_a_text_paired_with_itself_is_no_positive(transitive):
    rows = [row("Same text.", "same text", 1.0), row("a", "b", 1.0)]
    label = collate(rows, transitive=transitive)["label"]
    assert label["positive"].sum().item() == 1


def test_swap_exchanges_about_half_of_the_pairs_and_no_partner():
    torch.manual_seed(0)
    rows = [row(f"first{n:03d}", f"second{n:03d}") for n in range(400)]
    batch = collate(rows, swap=True)
    texts, label = decode(batch), batch["label"]
    pairs = [(texts[i], texts[j]) for i, j in zip(label["first"], label["second"], strict=True)]
    swapped = sum(a.startswith("second") for a, _ in pairs)
    assert 150 < swapped < 250
    assert {frozenset(pair) for pair in pairs} == {frozenset((r["text1"], r["text2"])) for r in rows}


def named_pairs(batch):
    """{(text, text): (score, weight)} of the labelled pairs, each pair in alphabetical order."""
    texts, label = decode(batch), batch["label"]
    columns = zip(
        label["first"], label["second"], label["score"].tolist(), label["weight"].tolist(), strict=True
    )
    found = [(tuple(sorted((texts[i], texts[j]))), (round(s, 4), round(w, 4))) for i, j, s, w in columns]
    assert len(dict(found)) == len(found), "a pair is labelled twice"
    return dict(found)


def test_transitive_labels_follow_from_paraphrases():
    # (A,B,1) (A,C,1) (B,D,.2): B and C are paraphrases, and D is as far from A and C as it is from B.
    rows = [row("a", "b"), row("a", "c"), row("b", "d", 0.2)]
    assert named_pairs(collate(rows, transitive=True)) == {
        ("a", "b"): (1, 1),
        ("a", "c"): (1, 1),
        ("b", "c"): (1, 1),
        ("b", "d"): (0.2, 1),
        ("a", "d"): (0.2, 1),
        ("c", "d"): (0.2, 1),
    }


def test_a_rows_own_label_wins_over_what_follows_from_others():
    # From (a,b,1) and (b,d,.2) would follow (a,d,.2), but a row says .5 itself; c gets the lowest.
    rows = [row("a", "b"), row("a", "c"), row("b", "d", 0.2, weight=0.5), row("a", "d", 0.5)]
    found = named_pairs(collate(rows, transitive=True))
    assert found["a", "d"] == (0.5, 1)
    assert found["b", "d"] == (0.2, 0.5)
    assert found["c", "d"] == (0.2, 0.5)


def test_derived_paraphrases_get_the_lowest_score_and_weight_of_their_group():
    rows = [row("a", "b", 1.0, weight=0.4), row("a", "c", 0.9)]
    assert named_pairs(collate(rows, transitive=True))["b", "c"] == (0.9, 0.4)


SOME_ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from("abcdef"),
        st.sampled_from("defghi"),
        st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
        weight=st.sampled_from([0.25, 0.5, 1.0]),
    ),
    min_size=1,
    max_size=8,
)


@given(rows=SOME_ROWS, seed=st.randoms(use_true_random=False))
def test_transitive_labels_do_not_depend_on_the_order_of_rows_or_texts(rows, seed):
    rows = [r for r in rows if r["text1"] != r["text2"]]
    shuffled = [r if seed.random() < 0.5 else r | {"text1": r["text2"], "text2": r["text1"]} for r in rows]
    seed.shuffle(shuffled)
    if rows:
        assert named_pairs(collate(shuffled, transitive=True)) == named_pairs(collate(rows, transitive=True))


def test_derived_pairs_are_on_the_scale_of_the_row_they_follow_from():
    rows = [row("a", "b", 1.0, scale=1), row("a", "c", 0.9, scale=2), row("b", "d", 0.2, scale=3)]
    rows.append(row("e", "f", 0.2, scale=0))
    for order in (rows, rows[::-1]):
        batch = collate(order, transitive=True)
        texts, label = decode(batch), batch["label"]
        columns = [label[name].tolist() for name in ("first", "second", "scale")]
        found = {"".join(sorted(texts[i] + texts[j])): scale for i, j, scale in zip(*columns, strict=True)}
        assert found == {"ab": 1, "ac": 2, "bc": 2, "bd": 3, "ad": 3, "cd": 3, "ef": 0}


def test_rows_without_a_scale_are_all_on_one():
    rows = [row("a", "b"), row("c", "d", 0.0)]
    assert collate(rows)["label"]["scale"].tolist() == [1, 1]
    assert collate([r | {"scale": n} for n, r in enumerate(rows)])["label"]["scale"].tolist() == [0, 1]


def test_transitive_pairs_are_swapped_too():
    torch.manual_seed(0)
    label = collate([row("x" * n, "y" * (n + 50)) for n in range(1, 50)], swap=True, transitive=True)["label"]
    assert 10 < (label["first"] > label["second"]).sum().item() < 40


def test_a_negative_row_inside_a_group_labels_only_itself():
    rows = [row("a", "b"), row("a", "c"), row("a", "d"), row("b", "c", 0.0)]
    found = {pair: score for pair, (score, _) in named_pairs(collate(rows, transitive=True)).items()}
    assert found["b", "c"] == 0.0
    assert found["b", "d"] == found["c", "d"] == 1.0


def test_the_prompt_reaches_the_tokeniser():
    seen = []

    def preprocess(texts, prompt=None):
        seen.append(prompt)
        return spelled(texts)

    collator(preprocess, prompt="query: ", chunk_size=1)([row("a", "b")])
    assert seen == ["query: ", "query: "]


def test_blocked_order_keeps_rows_of_a_key_together_and_loses_none():
    keys = [name for name in "abcdefgh" for _ in range(6)]
    order = blocked_order(keys, 3, torch.Generator().manual_seed(0))
    assert sorted(order) == list(range(48))
    runs = [{keys[i] for i in order[start : start + 3]} for start in range(0, 48, 3)]
    assert all(len(run) == 1 for run in runs)
    assert order != sorted(order)
    assert order != blocked_order(keys, 3, torch.Generator().manual_seed(1))


def sampler(seed=1, epoch=0, batch_size=4):
    made = EpochSampler(Dataset.from_dict({"x": list(range(10))}), batch_size, drop_last=False, seed=seed)
    made.set_epoch(epoch)
    return made


def test_epoch_holds_each_row_once():
    made = sampler()
    batches = list(made)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert len(made) == 3
    assert len({row for batch in batches for row in batch}) == 10


def test_order_follows_from_seed_and_epoch():
    first = list(sampler())
    assert list(sampler()) == first
    assert list(sampler(epoch=1)) != first
    assert list(sampler(seed=2)) != first
    assert list(sampler(epoch=1)) != list(sampler(seed=2))
    # A resumed run asks a new sampler for a later epoch.
    made = sampler()
    list(made)
    made.set_epoch(1)
    assert list(made) == list(sampler(epoch=1))


def test_sources_stay_together_in_blocks():
    sources = ["a", "b", "c", "d", "e"] * 2
    made = sampler(batch_size=2)
    made.sources, made.block = sources, 2
    assert sorted(sources[first] + sources[second] for first, second in made) == [
        "aa",
        "bb",
        "cc",
        "dd",
        "ee",
    ]


def swapped(collate, rows):
    label = collate(rows)["label"]
    return [int(a > b) for a, b in zip(label["first"].tolist(), label["second"].tolist(), strict=True)]


def test_swaps_follow_from_seed_and_rows(monkeypatch):
    rows = [{"text1": f"a{i}", "text2": f"long text {i}", "score": i / 20} for i in range(20)]
    first, second = (collator(swap=True, seed=seed, transitive=True) for seed in (1, 2))
    # Seeding torch would seed the GPUs too, and dropout there would draw the same masks again.
    monkeypatch.setattr(torch, "manual_seed", None)
    state = torch.get_rng_state()
    once = swapped(first, rows)
    assert torch.equal(torch.get_rng_state(), state)  # what dropout draws next is not touched
    torch.rand(3)
    assert swapped(first, rows) == once
    assert 0 < sum(once) < 20
    assert swapped(second, rows) != once
    assert swapped(first, rows[::-1])[::-1] != once  # other epochs bring other neighbours and other swaps


LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=9).map(sorted)


def cost(chunks):
    """Characters: every text as long as the chunk's longest, two special tokens each, 100 for the pass."""
    return sum(len(chunk) * (len(chunk[-1]) + 8) + 100 for chunk in chunks)


@given(LENGTHS, st.integers(1, 9))
def test_no_other_cuts_cost_less(lengths, most):
    texts = ["x" * length for length in lengths]
    chunks = adaptive_chunks(texts, most)
    assert [text for chunk in chunks for text in chunk] == texts
    assert max(map(len, chunks)) <= most
    inner = range(1, len(texts))
    every = [(0, *cuts, len(texts)) for n in range(len(texts)) for cuts in combinations(inner, n)]
    ways = [[texts[a:b] for a, b in pairwise(cuts)] for cuts in every]
    allowed = [way for way in ways if max(map(len, way)) <= most]
    assert cost(chunks) == min(map(cost, allowed))
