"""One training in the hands of a program: a model in memory, and nothing decided afterwards (`api.train`).

It is the training of `fit` (`training.trainer`) without what stands around that: no comparison with the
backbone, no guards, no report.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import nn
from transformers import TrainerCallback

from angle_data.calling.options import is_path
from angle_data.calling.row_errors import errors_naming_rows
from angle_data.calling.rows import sources
from angle_data.errors import InputError
from angle_data.jsonl import dumps, loads, write_json
from angle_data.locking import hold
from angle_train.data.forms import splits_in, with_names
from angle_train.data.pairs import PairSet, join, load_pairs
from angle_train.data.sources import read_rows
from angle_train.data.splits import together
from angle_train.keywords import RecipeKeywords
from angle_train.model.adapters import merge_adapters
from angle_train.model.load import (
    backbone_identity,
    check_device,
    load_backbone,
    load_for_training,
    prepare_for_training,
    save_model,
)
from angle_train.model.roles import roles_of, router_of
from angle_train.reading import reads_roles
from angle_train.recipe import SECTIONS, Recipe
from angle_train.training.arguments import Schedule, check_arguments, check_trackers
from angle_train.training.frozen import check_frozen
from angle_train.training.passed import Passed, read_arguments, with_arguments
from angle_train.training.presets import PRESETS, settle
from angle_train.training.processes import process_count
from angle_train.training.purpose import choose_recipe
from angle_train.training.run_directory import HIDDEN, RunDirectory
from angle_train.training.trainer import DevEvaluator, OwnEvaluator, TrainOptions, restore
from angle_train.training.trainer import train as take_steps
from angle_train.training.watch import DivergedError

_NOTES = "training.json"

AnyLoss = nn.Module | Callable[[Any], nn.Module]
"""A loss of Sentence Transformers, or a function that makes one for a model."""

log = logging.getLogger("angle.fit")


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """What `train` returns.

    Attributes:
        model: The model that was given, trained, or the one that was loaded.
        curve: Each evaluation, in order: `step`, `epoch` and `dev`, the mean Spearman (-1..1) over the dev
            pairs, or the evaluator's own figure.
        steps: Optimiser steps that were taken.
        best_step: The step whose weights `model` has: of the best evaluation, else the last.
        path: Where it was saved, if it was.
    """

    model: SentenceTransformer
    curve: Sequence[Mapping[str, float]]
    steps: int
    best_step: int
    path: Path | None = None

    @property
    def best(self) -> float | None:
        """The figure of the best evaluation; None where nothing was evaluated."""
        return max((point["dev"] for point in self.curve), default=None)


@dataclass(frozen=True, slots=True)
class TrainCall:
    """The arguments of `api.train`."""

    model: SentenceTransformer | str | os.PathLike[str]
    pairs: Any
    dev: Any
    evaluator: BaseEvaluator | None
    loss: AnyLoss | None
    out: Path | None
    keywords: Mapping[str, Any]


class _Job(NamedTuple):
    """What a training is made of beside its model."""

    pairs: PairSet | Dataset
    dev: list[PairSet]
    recipe: Recipe
    passed: Passed


def train_in_memory(asked: TrainCall) -> TrainedModel:
    """Train as `api.train` says."""
    if asked.dev is not None and asked.evaluator is not None:
        raise InputError("give either dev or evaluator: one of them chooses")
    if asked.evaluator is not None and (isinstance(asked.evaluator, type) or not callable(asked.evaluator)):
        raise InputError(
            f"evaluator: {type(asked.evaluator).__name__} cannot be called on a model; give one of those of "
            "sentence_transformers, made with your dev pairs"
        )
    if process_count() > 1:
        raise InputError(
            "train runs in one process; for several, use fit, or AngleLoss in a trainer of yours"
        )
    device = asked.keywords.get("device")
    overwrite = asked.keywords.get("overwrite", False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with errors_naming_rows(Path(folder), train="pairs"):
            job = _job(asked, Path(folder))
        callbacks = _checked_objects(asked)
        if asked.out is None:
            model = _load(asked.model, job.recipe, device)
            return _run(asked, model, _in_roles(job, model, asked), callbacks, Path(folder))
        # The user's model is changed, and the directory taken, when nothing is left to refuse.
        directory = RunDirectory(asked.out, _fingerprint(asked, job))
        if directory.status(overwrite=overwrite) == "finished":
            return _reopened(directory.path, device)
        with hold(directory.path / HIDDEN, directory.path):
            status = directory.status(overwrite=overwrite)
            if status == "finished":  # by another process meanwhile
                return _reopened(directory.path, device)
            model = _load(asked.model, job.recipe, device)
            job = _in_roles(job, model, asked)
            resume = directory.claim(status)
            found = _run(asked, model, job, callbacks, directory.checkpoints, resume)
            return _saved(found, directory)


def _checked_objects(asked: TrainCall) -> Sequence[Any]:
    """Return the callbacks; an InputError names a model, a loss or callbacks that cannot be used."""
    if not is_path(asked.model) and not isinstance(asked.model, SentenceTransformer):
        name = type(asked.model).__name__
        raise InputError(f"model: {name} is no SentenceTransformer; give one, or its folder")
    if asked.loss is not None and not callable(asked.loss):
        raise InputError(f"loss: {type(asked.loss).__name__} is no loss; give one, or a function of a model")
    if getattr(asked.loss, "model", asked.model) is not asked.model:
        raise InputError(
            "loss was made for another model; make it for this one, or give a function of a model"
        )
    if asked.loss is not None and isinstance(asked.model, SentenceTransformer):
        _refuse_router(asked.model, "model")
    return _callbacks(asked.keywords.get("callbacks"))


def _job(asked: TrainCall, folder: Path) -> _Job:
    """Return what to train on, and the recipe settled for it; rows in memory pass through `folder`."""
    keywords = asked.keywords
    passed = read_arguments(keywords.get("args"))
    check_trackers(passed.trackers, asked.out or folder)
    given = splits_in(asked.pairs)
    scale = keywords.get("scale")
    dev = with_names(asked.dev, "dev") if asked.dev is not None else None if asked.evaluator else given.dev
    files = sources(dev, folder, "dev")
    dev_sets = [load_pairs(file, "validation", scale, "dev") for file in files]
    keys = {"loss", *RecipeKeywords.__annotations__}
    values = {key: value for key, value in keywords.items() if key in keys}
    values = with_arguments(values, passed)
    if passed.max_steps is not None and values.get("epochs") is not None:
        raise InputError("epochs is given twice, as max_steps in args too; leave out one")
    name = keywords.get("recipe")
    if asked.loss is not None:
        rows = _as_data_set(given.train)
        if not len(rows):
            raise InputError("pairs: there are none; give at least two")
        recipe, _ = choose_recipe(name, [])
        # The values that depend on the kind of labels are those of scored pairs; the objective is not used.
        recipe = recipe.with_overrides(PRESETS["graded"] | {"loss": "graded"} | values)
        return _Job(rows, dev_sets, _with_steps(recipe, passed, len(rows)), passed)
    files = sources(given.train, folder, "train")
    if not files:
        raise InputError("pairs: got an empty list; give at least two pairs")
    train_sets = [load_pairs(file, "train", scale, "train", one_score=True) for file in files]
    recipe, _ = choose_recipe(name, files)
    recipe = settle(recipe.with_overrides(values), join(train_sets))
    _warn_of_what_fit_keeps(recipe)
    joined = together(join(train_sets), None, recipe.objective)
    return _Job(joined, dev_sets, _with_steps(recipe, passed, len(joined)), passed)


def _warn_of_what_fit_keeps(recipe: Recipe) -> None:
    """Warn of a recipe by which `fit` keeps what the backbone knew: nothing does so here."""
    training = recipe.training
    if training.keep_general or training.distil_epochs or training.average_with_backbone:
        log.warning(
            "warning: train learns the pairs alone; by this recipe fit also keeps what the backbone knew of "
            "other text: use fit, or expect to lose there"
        )


def _with_steps(recipe: Recipe, passed: Passed, count: int) -> Recipe:
    """Return the recipe with as many epochs as the steps take that were asked for, if they were."""
    if passed.max_steps is None:
        return recipe
    per_epoch = Schedule(recipe, count).per_epoch
    # Half a step less: the trainer rounds up.
    return recipe.with_overrides({"epochs": (passed.max_steps - 0.5) / per_epoch})


def _as_data_set(rows: Any) -> Dataset:
    """Return rows of any columns as a data set, unchanged."""
    if isinstance(rows, Dataset):
        return rows
    if is_path(rows):
        rows = [row for _, row in read_rows(os.path.expanduser(rows), "train")]
    if hasattr(rows, "iterrows"):
        return Dataset.from_pandas(rows, preserve_index=False)
    return Dataset.from_list(list(rows))


def _load(model: Any, recipe: Recipe, device: str | None) -> SentenceTransformer:
    """Return the model that is given, or that lies there, as training starts with it."""
    training = recipe.training
    tokens = training.max_seq_length if isinstance(training.max_seq_length, int) else None
    if is_path(model):
        check_device(device)
        path = os.path.expanduser(model)
        loaded = load_for_training(
            path, recipe.backbone, training.prompt, tokens, device, training.seed, roles_of(training)
        )
        check_arguments(recipe, loaded)
        check_frozen(loaded, recipe.backbone.layers_frozen)
        return loaded
    if recipe.backbone.quantization != "none":
        raise InputError("quantization is for models that are loaded; give the directory or id of the model")
    given: SentenceTransformer = model
    check_arguments(recipe, given)  # before the user's model is changed
    if given.transformers_model is not None:
        check_frozen(given, recipe.backbone.layers_frozen)
    prepare_for_training(given, "model", recipe.backbone, training.prompt, training.seed, roles_of(training))
    if tokens is not None:
        given.max_seq_length = tokens
    return given


def _run(
    asked: TrainCall,
    model: SentenceTransformer,
    job: _Job,
    callbacks: Sequence[Any],
    checkpoints: Path,
    resume: Path | None = None,
) -> TrainedModel:
    """Train, and leave the model with the weights of the best evaluation, or the last ones."""
    options = TrainOptions(trackers=job.passed.trackers, callbacks=callbacks, loss=asked.loss)
    judge = OwnEvaluator(asked.evaluator) if asked.evaluator else DevEvaluator(job.dev) if job.dev else None
    before = {name: value.detach().to("cpu", copy=True) for name, value in model.state_dict().items()}
    try:
        training = take_steps(
            model, job.pairs, job.recipe, checkpoints, evaluator=judge, resume=resume, options=options
        )
    except DivergedError:
        model.load_state_dict(before)
        raise
    best = training.best_step if judge is not None else training.steps
    if best != training.steps:
        restore(model, checkpoints, best)
    merge_adapters(model)
    return TrainedModel(model, training.curve, training.steps, best)


def _callbacks(given: Any) -> Sequence[Any]:
    """Return the callbacks that are given one by one, as one alone, or not at all."""
    alone = given is None or isinstance(given, (TrainerCallback, type)) or not isinstance(given, Iterable)
    callbacks = [] if given is None else [given] if alone else list(given)
    for each in callbacks:
        kind = each if isinstance(each, type) else type(each)
        if not issubclass(kind, TrainerCallback):
            raise InputError(
                f"callbacks: {kind.__name__} is no callback; give a TrainerCallback, or a list of them"
            )
    return callbacks


def _refuse_router(model: SentenceTransformer, name: str) -> None:
    """Raise an InputError for an asymmetric model, which a loss of the user's own cannot train here."""
    if router_of(model) is not None:
        raise InputError(
            f"{name} is asymmetric (Router): with a loss of your own, train it in a "
            "SentenceTransformerTrainer, where router_mapping says which column goes where"
        )


def _in_roles(job: _Job, model: SentenceTransformer, asked: TrainCall) -> _Job:
    """Return the job with pairs of queries and documents, if the user or the model says that they are."""
    name = str(asked.model) if is_path(asked.model) else "model"
    if not isinstance(job.pairs, PairSet):
        _refuse_router(model, name)
        return job
    if not reads_roles(model, job.recipe.training, name):
        return job
    dev = [replace(pairs, roles=True) for pairs in job.dev]
    return job._replace(pairs=replace(job.pairs, roles=True), dev=dev)


def _identity(model: SentenceTransformer) -> str:
    """Return a name for the weights of a model in memory."""
    weights = model.state_dict().items()
    return _digest(name.encode() + value.detach().float().cpu().numpy().tobytes() for name, value in weights)


def _digest(parts: Iterable[bytes]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:12]


def _described(part: Any) -> str:
    """Return what tells one loss or evaluator from another, as far as they say."""
    settings: Mapping[str, Any] = getattr(part, "get_config_dict", dict)()
    return f"{getattr(part, '__qualname__', type(part).__name__)} {settings}" if part is not None else ""


def _fingerprint(asked: TrainCall, job: _Job) -> dict[str, str]:
    """Return what decides a training, by part: two are the same if these are."""
    values = {key: value for name in SECTIONS for key, value in asdict(getattr(job.recipe, name)).items()}
    rows = job.pairs
    pairs = rows.sha256() if isinstance(rows, PairSet) else _digest(dumps(row).encode() for row in rows)
    model = asked.model
    return {
        **{key: dumps(value) for key, value in (values | job.recipe.arguments).items()},
        "loss": _described(asked.loss),
        "evaluator": _described(asked.evaluator),
        "backbone": _identity(model)
        if isinstance(model, SentenceTransformer)
        else backbone_identity(str(model)),
        "training pairs": pairs,
        "dev pairs": " ".join(each.sha256() for each in job.dev),
    }


def _saved(found: TrainedModel, directory: RunDirectory) -> TrainedModel:
    """Save a trained model and its curve, in place of what stood there."""
    with directory.replacing() as folder:
        notes = {name: getattr(found, name) for name in ("curve", "steps", "best_step")}
        write_json(folder / _NOTES, notes, indent=1)
        save_model(found.model, folder)
    directory.finish()
    return replace(found, path=directory.path)


def _reopened(path: Path, device: str | None) -> TrainedModel:
    """Return what an earlier call saved."""
    notes = loads((path / _NOTES).read_text(encoding="utf-8"))
    return TrainedModel(load_backbone(str(path), device=device), **notes, path=path)
