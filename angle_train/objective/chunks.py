"""Where to cut sorted texts into chunks so that padding and the number of forward passes cost least together.

Knows lengths in characters alone: cutting before tokenising lets the tokeniser pad each chunk by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

# What one more forward and backward pass costs, in characters of padding: about 20 tokens of a small encoder
# on one CPU core, measured. Half or twice as much changes the time by a few per cent.
_PASS = 100
_TOKENS_AROUND = 8  # the two special tokens of each text, in characters


def fixed_chunks(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    """Return consecutive chunks of `size` texts, the last one of what is left."""
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def adaptive_chunks(texts: Sequence[str], most: int) -> list[Sequence[str]]:
    """Return consecutive chunks that cost least, at most `most` texts each.

    A chunk costs its number of texts times the length of its longest, plus a constant for the pass. The best
    cuts follow from the best cuts of every beginning of the list, in O(N · most) steps.

    Args:
        texts: Sorted by length.
        most: Texts per chunk, at least 1.
    """
    cost, cut = [0.0], [0]
    for end in range(1, len(texts) + 1):
        longest = len(texts[end - 1]) + _TOKENS_AROUND
        choices = [(cost[start] + (end - start) * longest, start) for start in range(max(0, end - most), end)]
        least, start = min(choices)
        cost.append(least + _PASS)
        cut.append(start)
    chunks: list[Sequence[str]] = []
    end = len(texts)
    while end:
        chunks.append(texts[cut[end] : end])
        end = cut[end]
    return chunks[::-1]
