"""The collator: each distinct text once, chunks of similar length, labels that point to the right texts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from angle_train.objective.batches import PairCollator, blocked_order, positive_groups, spread_levels


def spelled(texts, prompt=None):
    """A tokeniser that keeps the characters: code points padded with 0 to the chunk's longest text."""
    width = max(len(text) for text in texts)
    ids = [[ord(c) for c in text] + [0] * (width - len(text)) for text in texts]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(ids) > 0}


def decode(batch):
    """The texts of all chunks, in order."""
    names = sorted(name for name in batch if name.endswith("_input_ids"))
    return ["".join(chr(c) for c in row if c) for name in names for row in batch[name].tolist()]


def row(text1, text2, score=1.0, **extra):
    return {"text1": text1, "text2": text2, "score": score, **extra}


def collate(rows, **options):
    return PairCollator(spelled, **{"swap": False, **options})(rows)


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


def test_equal_texts_in_different_spelling_share_a_group():
    batch = collate([row("The Disk is full.", "no space left"), row("the disk  is full", "volume at 100 %")])
    assert len(decode(batch)) == 4
    assert len(set(batch["label"]["group"].tolist())) == 1


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


def test_a_text_paired_with_itself_is_no_positive():
    label = collate([row("Same text.", "same text", 1.0), row("a", "b", 1.0)])["label"]
    assert label["positive"].tolist() == [False, True]


def test_weight_defaults_to_one():
    label = collate([row("a", "b"), row("c", "d", weight=0.25)])["label"]
    assert label["weight"].tolist() == [1.0, 0.25]


def test_swap_exchanges_about_half_of_the_pairs_and_no_partner():
    torch.manual_seed(0)
    rows = [row(f"first{n:03d}", f"second{n:03d}") for n in range(400)]
    batch = collate(rows, swap=True)
    texts, label = decode(batch), batch["label"]
    pairs = [(texts[i], texts[j]) for i, j in zip(label["first"], label["second"], strict=True)]
    swapped = sum(a.startswith("second") for a, _ in pairs)
    assert 150 < swapped < 250
    assert {frozenset(pair) for pair in pairs} == {frozenset((r["text1"], r["text2"])) for r in rows}


def test_batch_does_not_depend_on_the_order_of_rows():
    rows = [row("a", "bbb"), row("a", "cc", 0.0), row("dddd", "bbb", 0.5)]
    assert decode(collate(rows)) == decode(collate(rows[::-1]))


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


def test_transitive_labels_join_whole_groups():
    # Two groups {a,b} {x,y} joined by one random pair: all four combinations are random pairs.
    found = named_pairs(collate([row("a", "b"), row("x", "y"), row("a", "x", 0.0)], transitive=True))
    assert {pair: score for pair, (score, _) in found.items() if score == 0} == dict.fromkeys(
        [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")], 0.0
    )


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


def test_where_rows_disagree_about_a_pair_the_lower_score_counts_in_any_order():
    rows = [row("a", "bb", 1.0, weight=0.9), row("bb", "a", 0.2, weight=0.8), row("a", "c")]
    for order in (rows, rows[::-1]):
        assert named_pairs(collate(order, transitive=True))["a", "bb"] == (0.2, 0.8)


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


def test_transitive_pairs_are_swapped_too():
    torch.manual_seed(0)
    label = collate([row("x" * n, "y" * (n + 50)) for n in range(1, 50)], swap=True, transitive=True)["label"]
    assert 10 < (label["first"] > label["second"]).sum().item() < 40


def test_a_negative_row_inside_a_group_labels_only_itself():
    rows = [row("a", "b"), row("a", "c"), row("a", "d"), row("b", "c", 0.0)]
    found = {pair: score for pair, (score, _) in named_pairs(collate(rows, transitive=True)).items()}
    assert found["b", "c"] == 0.0
    assert found["b", "d"] == found["c", "d"] == 1.0


def test_of_equally_low_rows_between_groups_the_less_trusted_counts():
    rows = [row("a", "b"), row("a", "x", 0.2, weight=0.9), row("b", "x", 0.2, weight=0.3), row("x", "y")]
    for order in (rows, rows[::-1]):
        found = named_pairs(collate(order, transitive=True))
        assert found["a", "y"] == found["b", "y"] == (0.2, 0.3)


def test_a_text_paired_with_itself_is_no_positive_with_transitive_labels_either():
    label = collate([row("Same text.", "same text", 1.0), row("a", "b", 1.0)], transitive=True)["label"]
    assert label["positive"].sum().item() == 1


def test_the_prompt_reaches_the_tokeniser():
    seen = []

    def preprocess(texts, prompt=None):
        seen.append(prompt)
        return spelled(texts)

    PairCollator(preprocess, prompt="query: ", chunk_size=1)([row("a", "b")])
    assert seen == ["query: ", "query: "]


def test_blocks_are_shuffled_as_wholes():
    # 40 keys of one block each: were only rows shuffled, keys would come in order of first appearance
    # of the shuffled rows for every block size.
    keys = [f"{number:02d}" for number in range(40) for _ in range(4)]
    order = blocked_order(keys, 4, torch.Generator().manual_seed(0))
    seen = list(
        dict.fromkeys(keys[i] for i in torch.randperm(160, generator=torch.Generator().manual_seed(0)))
    )
    assert list(dict.fromkeys(keys[i] for i in order)) != seen


def test_without_anything_to_derive_transitive_changes_nothing():
    rows = [row("a", "b"), row("c", "d", 0.5), row("e", "f", 0.0)]
    assert named_pairs(collate(rows, transitive=True)) == named_pairs(collate(rows))


def test_blocked_order_keeps_rows_of_a_key_together_and_loses_none():
    keys = [name for name in "abcdefgh" for _ in range(6)]
    order = blocked_order(keys, 3, torch.Generator().manual_seed(0))
    assert sorted(order) == list(range(48))
    runs = [{keys[i] for i in order[start : start + 3]} for start in range(0, 48, 3)]
    assert all(len(run) == 1 for run in runs)
    assert order != sorted(order)
    assert order != blocked_order(keys, 3, torch.Generator().manual_seed(1))


def test_blocks_of_one_are_a_plain_shuffle():
    order = blocked_order(["a"] * 50 + ["b"] * 50, 1, torch.Generator().manual_seed(0))
    assert order == torch.randperm(100, generator=torch.Generator().manual_seed(0)).tolist()


@given(st.integers(1, 40), st.integers(0, 200), st.integers(1, 50), st.integers(0, 5))
def test_the_rarest_level_is_in_every_batch_in_its_share(rare, more, size, seed):
    levels = [1] * rare + [0] * (rare + more)
    order = spread_levels(levels, torch.Generator().manual_seed(seed)).tolist()
    assert sorted(order) == list(range(len(levels)))
    for start in range(0, len(order) - size + 1, size):
        share = rare * size / len(levels)
        assert abs(sum(levels[i] for i in order[start : start + size]) - share) < 1


def test_where_a_rare_level_stands_is_random():
    levels = [1, *[0] * 9]
    places = {spread_levels(levels, torch.Generator().manual_seed(s)).tolist().index(0) for s in range(200)}
    assert places == set(range(10))


def test_several_levels_are_all_spread():
    levels = [0] * 40 + [1] * 10 + [2] * 10 + [3] * 20
    order = spread_levels(levels, torch.Generator().manual_seed(3)).tolist()
    for start in range(0, 80, 16):  # each batch's share is 8, 2, 2, 4
        counts = [[levels[i] for i in order[start : start + 16]].count(level) for level in range(4)]
        assert all(abs(a - b) <= 1 for a, b in zip(counts, (8, 2, 2, 4), strict=True))
    assert order != spread_levels(levels, torch.Generator().manual_seed(4)).tolist()
    members = [i for i in order if levels[i] == 0]
    assert members != sorted(members)  # inside a level the order is random


def test_blocks_of_one_level_are_spread_as_wholes():
    # 30 sources of four pairs each; the pairs of a source all have its label. 6 sources are positive.
    keys = [f"s{i // 4}" for i in range(120)]
    scores = [float(i // 4 < 6) for i in range(120)]
    order = blocked_order(keys, 4, torch.Generator().manual_seed(0), scores)
    assert sorted(order) == list(range(120))
    assert all(len({keys[i] for i in order[n : n + 4]}) == 1 for n in range(0, 120, 4))
    for start in range(0, 120, 20):
        assert sum(scores[i] for i in order[start : start + 20]) == 4  # one block of the six in each batch
    plain = blocked_order(keys, 4, torch.Generator().manual_seed(0))
    assert min(sum(scores[i] for i in plain[n : n + 20]) for n in range(0, 120, 20)) == 0


def test_many_different_scores_count_as_few_levels():
    scores = [i / 1000 for i in range(1000)]
    order = blocked_order(["x"] * 1000, 1, torch.Generator().manual_seed(0), scores)
    assert sorted(order) == list(range(1000))
    for start in range(0, 1000, 100):  # every tenth of the range of scores is in every batch
        tenths = [int(10 * scores[i]) for i in order[start : start + 100]]
        assert min(tenths.count(tenth) for tenth in range(10)) >= 7
