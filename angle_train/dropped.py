"""Keys that recipes had once: files and runs of earlier versions that name them stay readable."""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Iterable, Mapping
from contextlib import suppress
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
    "restored_layers": (0.0, "distil_epochs keeps more for the same gain (benchmarks/log/distillation.md)"),
}
"""Keys that recipes had once -> the value that now holds for every run, and why there is no other.

Recipes and runs of earlier versions that name them with that value stay readable. With another one they
cannot be run again, and one line says so.
"""

MOVED_KEYS: Mapping[str, str] = {
    "weight_decay": "weight_decay",
    "max_grad_norm": "max_grad_norm",
    "scheduler": "lr_scheduler_type",
    "warmup_ratio": "warmup_ratio",
    "gradient_accumulation": "gradient_accumulation_steps",
    "gradient_checkpointing": "gradient_checkpointing",
}
"""Keys that recipes had once -> the library's name for it, which stands under `[arguments]`.

A recipe of an earlier version is read as if it had the new name; a run of one goes on.
"""
FREEZE_EMBEDDINGS = "freeze_embeddings"
"""A key that recipes had once: `frozen_layers` says the same, as the least of what can be frozen."""
_FREEZES = f'{FREEZE_EMBEDDINGS} moved: frozen_layers = "embeddings" under [backbone] says so now'
LATER_KEYS: Mapping[str, object] = {"distil_epochs": 0.0}
"""Keys that recipes did not always have -> the value that held before, so that a run from then goes on."""
_EVERY_RECIPE_HAS = "average_with_backbone"  # fingerprints of other things, such as a teacher's, lack it
_SECTIONS = ("objective", "backbone", "training")
_CONSTANT = {"constant": "constant_with_warmup"}  # what `scheduler` called the library's second


def today(tables: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the tables of a recipe as they are written today, and a line on each key of an earlier version.

    What is no table, or no value that such a key ever had, stays as it is: the recipe refuses it.

    Raises:
        InputError: A dropped key has another value than now holds, or a moved one is given twice.
    """
    found, lines = dict(tables), list[str]()
    sections = [name for name, part in tables.items() if name in _SECTIONS and isinstance(part, Mapping)]
    for name in sections:
        part = tables[name]
        had = (*MOVED_KEYS, FREEZE_EMBEDDINGS) if name != "objective" else ()
        moved = {key: value for key, value in part.items() if key in had and key in MOVED_KEYS}
        lines += [dropped_key_line(key) for key in part if key in DROPPED_KEYS]
        lines += [f"{moved_key_line(key)}; it is read as if it stood there" for key in moved]
        kept = {key: value for key, value in part.items() if key not in had}
        found[name] = _without_dropped(kept)
        if moved and isinstance(arguments := found.get("arguments", {}), Mapping):
            found["arguments"] = _with_moved(arguments, moved)
    for name in sections:  # after all of them: what it says stands in another one today
        if name != "objective" and FREEZE_EMBEDDINGS in tables[name]:
            lines.append(f"{_FREEZES}; it is read as if it did")
            frozen = _truth(tables[name][FREEZE_EMBEDDINGS])
            if isinstance(backbone := found.get("backbone", {}), Mapping):
                layers = _frozen(frozen, backbone.get("frozen_layers", 0))
                found["backbone"] = {**backbone, "frozen_layers": layers}
    return found, lines


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{FREEZE_EMBEDDINGS}: write true or false, got {value!r}; {_FREEZES}")
    return value


def _frozen(embeddings: bool, layers: object) -> object:
    """Return what `frozen_layers` is today; with a layer, the embeddings were frozen in any case."""
    return "embeddings" if embeddings and not layers else layers


def _with_moved(arguments: Mapping[str, Any], moved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with those of an earlier version among them."""
    renamed = {MOVED_KEYS[key]: _value_today(key, value) for key, value in moved.items()}
    if twice := sorted(renamed.keys() & arguments.keys()):
        raise InputError(f"{twice[0]} is given twice, by its former name too; leave that out")
    return {**arguments, **renamed}


def _value_today(key: str, value: Any) -> Any:
    return _CONSTANT.get(value, value) if key == "scheduler" and isinstance(value, str) else value


def _without_dropped(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without dropped keys; one with another value than now holds is an InputError."""
    for key, (value, _) in DROPPED_KEYS.items():
        if values.get(key, value) != value:
            raise InputError(f"{dropped_key_line(key)} (got {values[key]!r})")
    return {key: value for key, value in values.items() if key not in DROPPED_KEYS}


def dropped_key_line(key: str) -> str:
    """Return in a line that a key was dropped, why, and what to do."""
    always, why = DROPPED_KEYS[key]
    return f"{key} was dropped before 0.1.0 and is always {json.dumps(always)}: {why}; delete it"


def moved_key_line(key: str) -> str:
    """Return in a line where a key went."""
    name = MOVED_KEYS[key]
    elsewhere = f"--set arguments.{name}=…, in Python args={{'{name}': …}}"
    return f"{key} moved: write {name} under [arguments] ({elsewhere})"


def former_key_line(name: str) -> str | None:
    """Return in a line what became of a key of earlier versions; None for another name."""
    if name in DROPPED_KEYS:
        return dropped_key_line(name)
    if name in MOVED_KEYS:
        return moved_key_line(name)
    return _FREEZES if name == FREEZE_EMBEDDINGS else None


def refuse_dropped(names: Iterable[str]) -> None:
    """Raise an InputError if one of the names is a key of earlier versions."""
    for name in names:
        if (line := former_key_line(name)) is not None:
            raise InputError(line)


def parts_that_count(fingerprint: Mapping[str, str]) -> dict[str, str]:
    """Return what decided a run of an earlier version, by today's names.

    Left out are dropped keys whose value now always holds; a key that came later has the value that held.
    What `train` noted of training arguments beside the recipe stands in the recipe now, each by its name.
    """
    always = {key: json.dumps(value) for key, (value, _) in DROPPED_KEYS.items()}
    counts = {part: value for part, value in fingerprint.items() if always.get(part) != value}
    with suppress(ValueError, SyntaxError, TypeError):  # no literal: then these are two runs
        noted = dict(literal_eval(counts.get("args", "[]")))
        said = {name: value for name, value in noted.items() if value is not None and name != "report_to"}
        counts |= {name: json.dumps(value) for name, value in said.items()}
        counts.pop("args", None)
    if FREEZE_EMBEDDINGS in counts:
        frozen, layers = (
            json.loads(counts.pop(FREEZE_EMBEDDINGS)),
            json.loads(counts.get("frozen_layers", "0")),
        )
        counts["frozen_layers"] = json.dumps(_frozen(frozen, layers))
    if _EVERY_RECIPE_HAS in counts:
        counts = {key: json.dumps(value) for key, value in LATER_KEYS.items()} | counts
    return {
        MOVED_KEYS.get(part, part): json.dumps(_value_today(part, json.loads(value)))
        if part in MOVED_KEYS
        else value
        for part, value in counts.items()
    }
