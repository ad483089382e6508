"""Writes labelled pairs as a data set folder, with a card that has their statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from angle_data.publish.card import Card, render_card
from angle_data.publish.rows import write_rows
from angle_data.records import LabelledPair


def write_dataset(directory: Path, splits: Mapping[str, Sequence[LabelledPair]], card: Card) -> None:
    """Write `splits` and their card with statistics; see `write_rows`."""
    rows = {name: [pair.to_dict() for pair in pairs] for name, pairs in splits.items()}
    columns = list(next(iter(rows.values()))[0])
    write_rows(directory, rows, columns, lambda _: render_card(splits, card))
