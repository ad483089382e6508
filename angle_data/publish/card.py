"""Writes labelled pairs as a data set whose card has their statistics and what their maker says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from angle_data.publish.dataset import front_matter, table, write_rows
from angle_data.records import LabelledPair
from angle_data.text import jaccard, words

_COLUMNS = """\
| column | type | meaning |
|---|---|---|
| `text1` | string | the source text |
| `text2` | string | its partner |
| `label` | int64 | 1 similar, 0 not |
| `score` | float64 | orders pairs by similarity, 0 to 1 |
| `weight` | float64 | how far the pair is trusted, above 0 to 1 |
| `polarity` | string | `synonym`, `antonym` or `random`; empty for others |
| `source_id` | string | id of the source text |
| `models` | list of string | the annotators that offered the pair; empty for others |
| `flags` | list of string | notes such as `near_copy` |
| `supervision` | string | what the score rests on: `polarity`, `degrees`, `grades` or `random` |"""
_PURPOSE = "| `purpose` | string | what the set is for: to keep `opposites` apart, or `topics` together |"


@dataclass(frozen=True, slots=True)
class Card:
    """What a card says beyond the statistics: how the pairs were made, what they are not good for."""

    title: str
    summary: str
    making: tuple[str, ...]
    limits: tuple[str, ...]


def write_dataset(directory: Path, splits: Mapping[str, Sequence[LabelledPair]], card: Card) -> None:
    """Write `splits` and their card with statistics; see `write_rows`."""
    rows = {name: [pair.to_dict() for pair in pairs] for name, pairs in splits.items()}
    columns = list(next(iter(rows.values()))[0])
    write_rows(directory, rows, columns, lambda _: render_card(splits, card))


def render_card(splits: Mapping[str, Sequence[LabelledPair]], card: Card) -> str:
    """Return the card as Markdown with YAML front matter."""
    total = sum(len(pairs) for pairs in splits.values())
    # No `configs:` in the front matter: datasets finds the splits by the names of the files. With it, local
    # folders are cached by that block alone, and two data sets that share it are taken for each other.
    making = "\n".join(f"- {line}" for line in card.making)
    limits = "\n".join(f"- {line}" for line in card.limits)
    stated = any(pair.purpose for pairs in splits.values() for pair in pairs)
    columns = f"{_COLUMNS}\n{_PURPOSE}" if stated else _COLUMNS
    note = 'No licence is stated: add "license: ..." before you publish this data set.'
    return f"""\
{front_matter(total, "sentence-embeddings", note)}
# {card.title}

{card.summary}

```python
from datasets import load_dataset
pairs = load_dataset("path/to/this/folder")
```

## Columns

{columns}

## Statistics

Words are runs of letters and digits; overlap is the Jaccard index of the two texts' sets of words.

{_split_table(splits)}

{_model_table(pair for pairs in splits.values() for pair in pairs)}

## How it was made

{making}

## Limits

{limits}
"""


def _split_table(splits: Mapping[str, Sequence[LabelledPair]]) -> str:
    means = ("mean words 1", "mean words 2", "mean overlap")
    lines = []
    for name, pairs in splits.items():
        for polarity in sorted({pair.polarity or pair.supervision for pair in pairs}):
            rows = [pair for pair in pairs if (pair.polarity or pair.supervision) == polarity]
            bags = [(words(pair.text1), words(pair.text2)) for pair in rows]
            lengths = (f"{fmean(len(bag[side]) for bag in bags):.1f}" for side in (0, 1))
            overlap = fmean(jaccard(one, two) for one, two in bags)
            sources = len({pair.text1 for pair in rows})
            copies = sum("near_copy" in pair.flags for pair in rows)
            lines.append((name, polarity, len(rows), sources, *lengths, f"{overlap:.2f}", copies))
    return table(("split", "polarity", "pairs", "texts1", *means, "near copies"), lines)


def _model_table(pairs: Iterable[LabelledPair]) -> str:
    counts: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        counts.update((model, pair.polarity or pair.supervision) for model in pair.models)
    kinds = {"synonym": "synonyms", "antonym": "antonyms"}
    if any(kind == "degrees" for _, kind in counts):
        kinds["degrees"] = "at degrees"
    models = sorted({model for model, _ in counts})
    return table(("annotator", *kinds.values()), ((m, *(counts[m, kind] for kind in kinds)) for m in models))
