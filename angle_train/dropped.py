"""Keys that recipes had once: files and runs of earlier versions that name them stay readable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from angle_data.errors import InputError

DROPPED_KEYS: Mapping[str, tuple[object, str]] = {
    "in_batch_mean": ("positives", "the mean over all pairs was no better (benchmarks/log/objectives.md)"),
    "lora_alpha": (32.0, "it was 32 in every recipe; lora_rank and learning_rate do the same"),
    "human_weight": (1.0, "no gain was ever measured; give the other rows a weight below 1"),
    "teacher_weight": (1.0, "no other value was ever measured (benchmarks/log/teacher.md)"),
    "attention": ("auto", "transformers chooses, or attn_implementation in the checkpoint's config.json"),
    "chunking": ("auto", "the faster way is known for each machine (benchmarks/log/adaptive-chunks.md)"),
    "folds": (5, "no other number was ever measured"),
}
"""Keys that recipes had once -> the value that now holds for every run, and why there is no other.

Recipes and runs of earlier versions that name them with that value stay readable. With another one they
cannot be run again, and one line says so.
"""


def dropped_key_line(key: str) -> str:
    """Return in a line that a key was dropped, why, and what to do."""
    always, why = DROPPED_KEYS[key]
    return f"{key} was dropped before 0.1.0 and is always {json.dumps(always)}: {why}; delete it"


def refuse_dropped(names: Iterable[str]) -> None:
    """Raise an InputError if one of the names is a dropped key."""
    for name in names:
        if name in DROPPED_KEYS:
            raise InputError(dropped_key_line(name))


def without_dropped(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without dropped keys; one with another value than now holds is a ValueError."""
    for key, (value, _) in DROPPED_KEYS.items():
        if values.get(key, value) != value:
            raise ValueError(f"{dropped_key_line(key)} (got {values[key]!r})")
    return {key: value for key, value in values.items() if key not in DROPPED_KEYS}


def parts_that_count(fingerprint: Mapping[str, str]) -> dict[str, str]:
    """Return what decided a run of an earlier version, without dropped keys whose value now always holds."""
    always = {key: json.dumps(value) for key, (value, _) in DROPPED_KEYS.items()}
    return {part: value for part, value in fingerprint.items() if always.get(part) != value}
