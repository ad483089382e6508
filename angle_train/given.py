"""What callers of `fit` and `evaluate` give, in any form, checked before slow imports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from angle_data.calling.options import is_path
from angle_data.calling.rows import sources
from angle_data.errors import InputError
from angle_train.data.forms import splits_in, with_names


def given_pairs(data: Any, dev: Any, test: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the pairs and texts that `fit` was given, by what they are for; takes them out of `options`."""
    splits = splits_in(data)
    given = {"data": splits.train, "human": with_names(options.pop("human", None))}
    given["dev"] = splits.dev if dev is None else with_names(dev)
    given["test"] = splits.test if test is None else with_names(test)
    given |= {name: with_names(options.pop(name, None)) for name in ("keep", "guard", "teacher_pairs")}
    if all(given[name] is None for name in ("data", "human", "teacher_pairs")):
        raise InputError("nothing to train on: give --data, --human, or --teacher with --teacher-pairs")
    return given


def checked_backbone(backbone: Any, given: Mapping[str, Any], teacher: str | None, out: Path) -> str:
    """Return directory or id of the backbone, once all inputs and `out` are found usable.

    A model in memory is written into the run's hidden folder.
    """
    from angle_train.training.run_directory import HIDDEN, check_out

    in_memory = hasattr(backbone, "save_pretrained")
    name = "" if in_memory else several(backbone)[0]
    check_inputs(given.values(), [name] if name else [], [teacher] if teacher else [])
    check_out(out)
    if in_memory:
        from angle_train.model.load import kept_in

        return kept_in(out / HIDDEN, backbone)
    return name


def paths_of_models(value: Any, folder: Path) -> list[str]:
    """Return one model or several as paths or ids; models in memory are saved in `folder`."""
    found = value if isinstance(value, list | tuple) else [value]
    return [_model_of(item, folder) for item in found if item is not None]


def _model_of(model: Any, folder: Path) -> str:
    if not hasattr(model, "save_pretrained"):
        return several(model)[0]
    from angle_train.model.load import kept_in

    return kept_in(folder, model)


def check_inputs(pairs: Iterable[Any], models: Iterable[str], embedders: Iterable[str] = ()) -> None:
    """Raise an InputError unless pairs and models exist, before slow imports; the hub is asked for models.

    `embedders` are models, or files of vectors.
    """
    from angle_train.data.sources import check_source
    from angle_train.data.vectors import check_vectors, is_vectors
    from angle_train.model.load import check_model

    for value in pairs:
        paths = [value] if is_path(value) else value if isinstance(value, list | tuple) else ()
        for path in filter(is_path, paths):
            check_source(os.path.expanduser(path))
    for model in models:
        check_model(model)
    for embedder in embedders:
        (check_vectors if is_vectors(embedder) else check_model)(embedder)


def one_judged(value: Any, folder: Path) -> str | None:
    """Return where the pairs are that a language model graded, rows in memory in a file of `folder`."""
    found = sources(value, folder, "judged")
    if len(found) > 1:
        raise InputError("give one --judged: the grades of several language models are on no common scale")
    return found[0] if found else None


def several(value: Any) -> list[str]:
    """Return one path or name, or several, as strings; what is no path is a model in memory, or a slip."""
    found = [value] if is_path(value) else value if isinstance(value, list | tuple) else [value]
    for item in found:
        if item is not None and not is_path(item):
            said = f"{type(item).__name__} is neither a path nor a name"
            raise InputError(f"{said}; save a model that is in memory, and give its folder")
    return [os.path.expanduser(item) for item in found if item is not None]
