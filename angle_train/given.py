"""What callers of `fit` and `evaluate` give, in any form, checked before slow imports.

So is the section `[fit]` of an `angle.toml`, which a project looks at before it spends money.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

from angle_data.calling.checks import errors_of
from angle_data.calling.defaults import check_known
from angle_data.calling.options import Option, is_path, make, path_of, wrong_values
from angle_data.calling.rows import sources
from angle_data.errors import AngleError, InputError
from angle_data.tables import HUB_PREFIX
from angle_train.data.forms import splits_in, with_names
from angle_train.options import VECTOR_KINDS, FitOptions
from angle_train.recipe import MERGE_BACK, Recipe, find_recipe, parse_settings

log = logging.getLogger("angle.fit")

OF_RECIPE = (
    "epochs",
    "batch_size",
    "learning_rate",
    "max_seq_length",
    "precision",
    "seed",
    "roles",
    "query_prompt",
    "document_prompt",
    "merge_back",
    "guard_loss",
)
"""The options of `fit` that replace a value of the recipe."""
_READ = (
    *("data", "human", "dev", "test", "dev_search", "test_search"),
    *("judged", "keep", "guard", "teacher_pairs"),
)
# Options that name what fit reads: files and folders, or `hub:ID`.
_OF_TEXTS = ("keep", "teacher_pairs")  # of these, what may hold texts alone
_OF_KEPT = {"keep_weight", "keep_texts"}
_SEARCHES = ("dev_search", "test_search")
_TRAINS_ON = ("data", "human", "teacher_pairs")
_DEVICES = ("cpu", "cuda", "mps")  # a run in several processes numbers its devices by itself


def given_pairs(data: Any, dev: Any, test: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the pairs and texts that `fit` was given, by what they are for; takes them out of `options`."""
    splits = splits_in(data)
    given = {"data": splits.train, "human": with_names(options.pop("human", None), "human")}
    given["dev"] = splits.dev if dev is None else with_names(dev, "dev")
    given["test"] = splits.test if test is None else with_names(test, "test")
    given |= {name: with_names(options.pop(name, None), name) for name in ("keep", "guard", "teacher_pairs")}
    for name, value in given.items():
        refuse_empty(name, value)
    if all(given[name] is None for name in ("data", "human", "teacher_pairs")):
        raise InputError("nothing to train on: give --data, --human, or --teacher with --teacher-pairs")
    return given


def refuse_empty(name: str, value: Any) -> None:
    """Raise an InputError for a list without items: what was to fill it found nothing."""
    if isinstance(value, list | tuple) and not value:
        raise InputError(f"{name}: got an empty list; give pairs or texts, or leave it out")


def warn_of_nothing_kept(values: Mapping[str, Any], recipe: Recipe, keep: Any) -> None:
    """Warn where values of the recipe say how similarities are kept, and none are."""
    training = recipe.training
    if keep is None and not training.keep_general:
        why = "no texts are kept; give --keep FILE, or --set keep_general=true"
    elif training.distil_epochs:
        why = "distil_epochs keeps embeddings, not similarities; leave {0} out, or --set distil_epochs=0"
    else:
        return
    for name in sorted(_OF_KEPT & values.keys()):
        log.warning("warning: %s has no effect, since %s", name, why.format(name))


def checked_backbone(backbone: Any, given: Mapping[str, Any], teacher: str | None, out: Path) -> str:
    """Return directory or id of the backbone, once all inputs and `out` are found usable.

    A model in memory is written into the run's hidden folder.
    """
    from angle_train.training.run_directory import HIDDEN, check_out

    in_memory = _in_memory(backbone)
    name = several(backbone)[0] if in_memory is None else ""
    pairs = (value for option, value in given.items() if option not in _OF_TEXTS)
    texts = (given[option] for option in _OF_TEXTS)
    check_inputs(pairs, [name] if name else [], [teacher] if teacher else [], texts)
    check_out(out)
    return name if in_memory is None else kept_in(out / HIDDEN, in_memory)


def paths_of_models(value: Any, folder: Path) -> list[str]:
    """Return one model or several as paths or ids; models in memory are saved in `folder`."""
    found = value if isinstance(value, list | tuple) else [value]
    return [_model_of(item, folder) for item in found if item is not None]


def _model_of(model: Any, folder: Path) -> str:
    in_memory = _in_memory(model)
    return several(model)[0] if in_memory is None else kept_in(folder, in_memory)


def _in_memory(model: Any) -> Any:
    """Return the model in memory that a caller gave, itself or as what `train` returned; None for a path."""
    if is_path(model):
        return None
    if hasattr(model, "save_pretrained"):
        return model
    from angle_train.in_memory import TrainedModel

    return model.model if isinstance(model, TrainedModel) else None


def kept_in(folder: Path, model: Any) -> str:
    """Save a model in memory under `folder` and return where; equal models are saved once.

    The truncation and padding that its last call left in the tokenizer of a transformer are not kept: the
    next call sets them again. A static model reads by its own.
    """
    from tokenizers import Tokenizer

    from angle_train.model.load import backbone_identity, save_model

    new = folder / "in-memory"
    shutil.rmtree(new, ignore_errors=True)
    save_model(model, new)
    for config in new.rglob("config.json"):  # which a static model lacks
        if (file := config.with_name("tokenizer.json")).is_file():
            tokenizer = Tokenizer.from_file(str(file))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            tokenizer.save(str(file))
    place = folder / backbone_identity(str(new)).replace("@", "-")
    if place.is_dir():
        shutil.rmtree(new)
    else:
        new.rename(place)
    return str(place)


def check_inputs(
    pairs: Iterable[Any], models: Iterable[str], embedders: Iterable[str] = (), texts: Iterable[Any] = ()
) -> None:
    """Raise an InputError unless pairs and models exist, before slow imports; the hub is asked for models.

    `embedders` are models, or files of vectors; `texts` are pairs, too, or texts alone.
    """
    from angle_train.data.sources import check_source
    from angle_train.data.vectors import check_vectors, is_vectors
    from angle_train.model.load import check_model

    for values, alone in ((pairs, False), (texts, True)):
        for value in values:
            paths = [value] if is_path(value) else value if isinstance(value, list | tuple) else ()
            for path in filter(is_path, paths):
                check_source(os.path.expanduser(path), texts=alone)
    for model in models:
        check_model(model)
    for embedder in embedders:
        if os.path.isfile(embedder) and not is_vectors(embedder):
            raise InputError(
                f"{embedder} is a file; give the directory of a model, its id on the hub, or its vectors "
                f"({VECTOR_KINDS})"
            )
        (check_vectors if is_vectors(embedder) else check_model)(embedder)


def files_of(given: Mapping[str, Any], judged: Any, folder: Path) -> dict[str, Any]:
    """Return the files of what `given_pairs` found and of `judged`; rows are written to `folder`."""
    files: dict[str, Any] = {
        name: sources(value, folder, "train" if name == "data" else name) for name, value in given.items()
    }
    return files | {"judged": one_judged(judged, folder)}


def one_judged(value: Any, folder: Path) -> str | None:
    """Return where the pairs are that a language model graded, rows in memory in a file of `folder`."""
    refuse_empty("judged", value)
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


def split_values(given: FitOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options that `api.fit` takes by their names, and the values of the recipe by their keys.

    Raises:
        InputError: A value of the recipe is unknown, illegal, or given twice.
    """
    options = asdict(given)
    options["roles"] = given.roles or None  # without the flag the recipe says
    named = {name: (f"--{name.replace('_', '-')}", options.pop(name)) for name in OF_RECIPE}
    named[MERGE_BACK] = named.pop("merge_back")
    return options, parse_settings(options.pop("setting") or (), named)


def read_section(section: Mapping[str, Any], place: str) -> FitOptions:
    """Return the options that a section gives; what can be given several times may stand alone.

    Args:
        section: The options, by the names that functions have for them.
        place: Where they stand: it opens every message.

    Raises:
        InputError: An option is unknown, of a wrong kind, or missing.
    """
    check_known(section, [key for key, _ in _keys().values()], place)
    values, missing = _values_of(section)
    if missing:
        raise InputError(f"{place} lacks {missing[0].replace('_', '-')}; add it")
    try:
        return make(FitOptions, values)
    except InputError as error:
        raise InputError(f"{place} {error}") from None


def _values_of(section: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what a section gives for every option, or its default; also which have neither."""
    kinds = get_type_hints(FitOptions)
    values = dict[str, Any]()
    missing = []
    for name, (key, default) in _keys().items():
        if (value := section.get(key, default)) is MISSING:
            missing.append(key)
        accepted = (kinds[name], *get_args(kinds[name]))
        several = list[str] in accepted
        values[key] = [value] if several and isinstance(value, str) else _as_in_a_shell(value, accepted)
    return values, missing


def _as_in_a_shell(value: Any, accepted: Collection[Any]) -> Any:
    """Return a number in quotes as a number, and a number as text, where an option accepts only that."""
    if isinstance(value, int | float) and not isinstance(value, bool) and str in accepted:
        return str(value)
    for kind in (int, float):
        if isinstance(value, str) and kind in accepted:
            with suppress(ValueError):  # the check of all values says what is wrong
                return kind(value)
    return value


def look_at_section(section: Mapping[str, Any], place: str) -> tuple[list[AngleError], list[tuple[str, str]]]:
    """Look at what `fit` will be given; args are those of `read_section`. Nothing is asked of the hub.

    Returns all that `fit` would refuse, as far as one slip does not hide another, and the files that it
    reads, each with the option that names it; these may not be there yet.
    """
    defaults = dict(_keys().values())
    found = errors_of(partial(check_known, [name], defaults, "") for name in section)
    values, missing = _values_of(section)
    misspelt = bool(found)  # what seems to be missing may be there by another name
    if not misspelt:
        found += [InputError(f"lacks {key.replace('_', '-')}; add it") for key in missing]
    values |= dict.fromkeys(missing, "")
    wrong = wrong_values(FitOptions, values)
    found += wrong.values()
    absent = {*missing, *wrong}
    # What is wrong by itself counts as not given, so that it does not hide the rest.
    sound = values | {key: "" if defaults[key] is MISSING else defaults[key] for key in wrong}
    given = make(FitOptions, sound)
    found += errors_of(_checks(given, absent))
    if not (misspelt or absent.intersection(_TRAINS_ON) or any(getattr(given, name) for name in _TRAINS_ON)):
        found.append(InputError('names nothing to train on; add data = ["runs/pairs"]'))
    named = {name: getattr(given, name) or [] for name in _READ}
    every = ((name, each if isinstance(each, list) else [each]) for name, each in named.items())
    files = [(name, file) for name, files in every for file in files if not file.startswith(HUB_PREFIX)]
    # A search that is no folder is told of above.
    files = [(name, file) for name, file in files if name not in _SEARCHES or os.path.isdir(path_of(file))]
    return [InputError(f"{place} {str(error).lstrip()}") for error in found], files


def _keys() -> dict[str, tuple[str, Any]]:
    """Return by field of `FitOptions` the name that the option has in a section, and its default."""
    looks: dict[str, Option] = {item.name: item.metadata["option"] for item in fields(FitOptions)}
    return {item.name: (looks[item.name].flag or item.name, item.default) for item in fields(FitOptions)}


def _checks(given: FitOptions, absent: Collection[str]) -> Iterator[Callable[[], object]]:
    """Yield what raises an `InputError` about a value that `fit` would refuse, but for options `absent`."""
    from angle_train.data.scores import check_threshold, parse_scale
    from angle_train.data.search_set import DEV_SPLITS, search_files
    from angle_train.training.run_directory import check_out

    yield from _checks_of_recipe(given)
    if given.scale is not None:
        yield partial(parse_scale, given.scale)
    yield partial(check_threshold, given.threshold)
    yield partial(_check_device, given.device)
    for searches, splits in ((given.dev_search, DEV_SPLITS), (given.test_search, None)):
        for search in searches or ():
            if not search.startswith(HUB_PREFIX):
                yield partial(search_files, os.path.expanduser(search), splits)
    if given.teacher is not None:
        yield partial(_check_model, "teacher", given.teacher)
    if "backbone" not in absent:
        yield partial(_check_model, "backbone", given.backbone)
    if "out" not in absent:
        yield partial(check_out, path_of(given.out))


def _checks_of_recipe(given: FitOptions) -> Iterator[Callable[[], object]]:
    """Yield a check of each option and setting by itself, then of all together in their recipe."""
    for name in OF_RECIPE:
        value = getattr(given, name)
        # A flag that is not set says nothing: see `split_values`.
        one = (f"--{name.replace('_', '-')}", None if value is False else value)
        yield partial(parse_settings, (), {MERGE_BACK if name == "merge_back" else name: one})
    for setting in given.setting or ():
        yield partial(parse_settings, [setting])
    yield partial(_recipe_of, given)
    yield partial(_check_overrides, given)


def _recipe_of(given: FitOptions) -> Recipe:
    if not isinstance(given.recipe, str | None):
        raise InputError(f"recipe must be a name or a .toml file, got {given.recipe!r}")
    if given.recipe is None:
        return Recipe()
    return Recipe.from_toml(find_recipe(os.path.expanduser(given.recipe)))


def _check_overrides(given: FitOptions) -> None:
    _, values = split_values(given)
    _recipe_of(given).with_overrides(values)


def _check_device(device: str | None) -> None:
    if device is not None and device not in _DEVICES:
        raise InputError(f"--device must be cpu, cuda or mps, got {device!r}")


def _check_model(option: str, name: str) -> None:
    """Raise an `InputError` about a path that holds no model, or a teacher's file of vectors that is none."""
    from angle_train.data.vectors import check_vectors, is_vectors
    from angle_train.model.load import check_model_path

    path = os.path.expanduser(name)
    if option == "teacher" and is_vectors(path):
        check_vectors(path)
    elif not check_model_path(path):
        _warn_if_out_of_reach(path, option)


def _warn_if_out_of_reach(hub_id: str, option: str) -> None:
    """Warn of a model that is not in the cache while HF_HUB_OFFLINE forbids to ask the hub."""
    from huggingface_hub import constants

    from angle_train.model.load import is_cached

    if constants.HF_HUB_OFFLINE and not is_cached(hub_id):
        log.warning(
            "warning: %s is not in the cache, and HF_HUB_OFFLINE forbids to fetch it: fit will need %s "
            '= "DIR" below [fit]',
            hub_id,
            option,
        )
