"""The collator: each distinct text once, chunks of similar length, labels that point to the right texts."""

import torch

from angle_train.batching import PairCollator


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
