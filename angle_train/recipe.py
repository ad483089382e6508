"""One frozen, validated recipe is one run: its sections, what their values may be, TOML files and overrides.

Loads pydantic, and nothing heavier.
"""

from __future__ import annotations

import difflib
import json
import logging
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from angle_data.errors import InputError
from angle_data.resources import packaged_folder
from angle_train.dropped import refuse_dropped, today
from angle_train.trainer_arguments import completed, is_argument, why_refused

log = logging.getLogger("angle.fit")

AUTO = "auto"
"""The value of a setting that is chosen from the data."""
EMBEDDINGS = "embeddings"
"""The value of `frozen_layers` that leaves the token embeddings as they are, and no layer."""
CHECKPOINT = "checkpoint"
"""The value of `pooling` that keeps what the checkpoint has."""
# The default of values that depend on the kind of labels. They are None until `training.presets.settle`
# chooses them, before anything trains; typed so that what comes after need not ask.
_OPEN: Any = None

LabelKind = Literal[
    "auto", "graded", "degrees", "polarity", "mixed", "binary", "near_misses", "positives", "papers"
]
AngleMode = Literal["symmetric", "published"]
Pooling = Literal["checkpoint", "cls", "last-avg", "last-max", "last-token"]

_AtLeast0 = Annotated[float, Field(ge=0)]
_Above0 = Annotated[float, Field(gt=0)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Below1 = Annotated[float, Field(ge=0, lt=1)]
_Count = Annotated[int, Field(ge=1)]
_Two = Annotated[int, Field(ge=2)]
_RULES = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

MERGE_BACK = "average_with_backbone"
"""The key of what `fit` calls --merge-back."""
ARGUMENTS = "arguments"
"""The table of settings of the library's trainer; it has no keys of its own."""
ARGS = "args"
"""What `fit` and `train` call the same."""


def _refuse(problems: Sequence[str]) -> None:
    """Let pydantic refuse a section of which single values are right, but do not go together."""
    if problems:
        raise ValueError("; ".join(problems))


@dataclass(frozen=True, slots=True, config=_RULES)
class ObjectiveConfig:
    """The combined objective w1·cosine + w2·in-batch + w3·angle (AnglE Eq. 8), in the papers' units.

    Weights, temperatures and the two scores that are not stated are those of the kind of labels, see
    `training.presets.PRESETS`.

    Attributes:
        loss: The kind of labels: `graded` (pairs that people or an LLM graded), `degrees` (sentences that an
            LLM wrote at degrees of similarity), `polarity` (synonyms and antonyms by an LLM), `mixed` (of
            these three), `binary`, `near_misses` (binary, and hard to tell apart), `positives` (alone);
            `auto` tells it from the training pairs. `papers` is no kind: the papers' three terms.
        cosine_weight: w1; 0 switches the term off.
        in_batch_weight: w2.
        angle_weight: w3.
        cosine_tau: Temperature of the cosine objective; divides.
        in_batch_tau: Temperature of the in-batch objective.
        angle_tau: Temperature of the angle objective.
        angle_mode: `symmetric` or `published`, see `terms.SIMILARITIES`.
        positive_score: Pairs with at least this score (0..1) are positives of the in-batch objective.
        negative_score: Pairs with a score above this one and below `positive_score` are neither positives
            nor negatives of the in-batch objective: antonyms that are on topic, say.
        transitive: Rank also the pairs of a batch whose label follows from others: what is known of a text
            holds for its paraphrases, see `labels.transitive_pairs`.
        isp: Which texts of a batch are no in-batch negatives of each other (identical-sentence-pair
            detection): `groups` those that equal texts and positive pairs connect, `equal` equal texts only,
            `none` detects nothing; a text that several pairs share is encoded and counted once in any case.
        keep_weight: Of the squared differences of cosines from the backbone's, among texts that are to keep
            theirs, see `kept`; of no effect with `distil_epochs`.
        matryoshka_dims: The objective is also computed on the first d dimensions, for each d here, and the
            sum is trained, so that embeddings can be cut to d (https://arxiv.org/abs/2205.13147).
    """

    loss: LabelKind = "auto"
    cosine_weight: _AtLeast0 = _OPEN
    in_batch_weight: _AtLeast0 = _OPEN
    angle_weight: _AtLeast0 = _OPEN
    cosine_tau: _Above0 = _OPEN
    in_batch_tau: _Above0 = _OPEN
    angle_tau: _Above0 = _OPEN
    angle_mode: AngleMode = "symmetric"
    positive_score: _Share = _OPEN
    negative_score: _Share = _OPEN
    transitive: bool = False
    isp: Literal["groups", "equal", "none"] = "groups"
    keep_weight: _Above0 = 1000.0
    matryoshka_dims: Annotated[tuple[_Two, ...], Field(strict=False)] = ()

    def __post_init__(self) -> None:
        problems = []
        if self.cosine_weight == self.in_batch_weight == self.angle_weight == 0:
            problems.append("at least one of the three weights must be above 0")
        scores = (self.positive_score, self.negative_score)
        if None not in scores and self.negative_score >= self.positive_score:
            problems.append("negative_score must be below positive_score")
        if len(set(self.matryoshka_dims)) < len(self.matryoshka_dims):
            problems.append(f"matryoshka_dims must be different numbers, got {list(self.matryoshka_dims)}")
        _refuse(problems)


@dataclass(frozen=True, slots=True, config=_RULES)
class BackboneConfig:
    """What is made of the checkpoint before it is trained.

    Attributes:
        pooling: From token embeddings to one per text, see `pooling.POOLINGS`. `checkpoint` keeps what the
            checkpoint has; a plain transformer is averaged, a causal language model read at its last token.
        lora_rank: Rank of LoRA adapters, which then are all that is trained; 0 trains every weight.
        lora_dropout: Share of the adapters' inputs that is dropped in training.
        lora_targets: `auto` (the attention projections that peft knows for the architecture), `all` (every
            linear layer), or names of layers with commas between.
        frozen_layers: The token embeddings and so many of the lowest layers stay as they are, and are
            computed once for each text: faster, and closer to the backbone. See `training.frozen`.
            `embeddings` leaves these alone as they are: with few texts most of the vocabulary is never seen,
            and moving only the words that are pulls them away from the rest.
        quantization: `4bit` holds the frozen weights in 4-bit NormalFloat (QLoRA); needs LoRA and a GPU.
    """

    pooling: Pooling = "checkpoint"
    lora_rank: Annotated[int, Field(ge=0)] = 0
    lora_dropout: _Below1 = 0.05
    lora_targets: str = "auto"
    frozen_layers: Annotated[int, Field(ge=0)] | Literal["embeddings"] = 0
    quantization: Literal["none", "4bit"] = "none"

    def __post_init__(self) -> None:
        problems = []
        if not self.lora_targets.replace(",", " ").split():
            problems.append(
                f"lora_targets must be auto, all, or names with commas between, got {self.lora_targets!r}"
            )
        if self.quantization != "none" and not self.lora_rank:
            problems.append(f"quantization {self.quantization} trains adapters only; set lora_rank too")
        _refuse(problems)

    @property
    def layers_frozen(self) -> int:
        """How many layers are frozen above the embeddings, and computed once for each text."""
        return self.frozen_layers if isinstance(self.frozen_layers, int) else 0


@dataclass(frozen=True, slots=True, config=_RULES)
class TrainingConfig:
    """How one run trains; the defaults suit a few thousand pairs and a pre-trained sentence encoder.

    Attributes:
        epochs: Passes over the training pairs; fractions are allowed. Default by the kind of labels.
        batch_size: Pairs per forward pass.
        learning_rate: Peak learning rate of AdamW. Default by the kind of labels.
        max_seq_length: Tokens per text, longer texts are cut; none keeps the checkpoint's own, `auto` chooses
            the shortest that cuts hardly any training text, see `length.choose_length`.
        evals_per_epoch: Evaluations on the dev pairs, and checkpoints, per epoch.
        patience: Stop after this many evaluations without a new best one.
        seed: Seeds everything that is random. On a CPU the same seed and number of threads give the same
            bytes; on a GPU, which adds up in no fixed order, the last digits differ.
        precision: `auto` is bf16 on a GPU that has it and on a processor with AMX, and fp32 elsewhere.
            Weights stay fp32.
        source_block: Pairs of one source text that are drawn into a batch together; 1 draws every pair alone,
            more saves encoding the source again and compares its pairs with each other.
        chunk_size: Texts per forward pass inside a batch, for memory and speed; fewer on one CPU thread,
            see `batches.PairCollator`. Loss and gradient are the same but for which activations dropout
            draws: a run ends as one with another seed does.
        gradient_cache: Hold the activations of one chunk at a time and encode every text twice, so that a
            large batch fits a small memory, see `loss.encode_cached`; the result stays the same.
        swap: Exchange the two texts of a pair at random, see `batches.PairCollator`.
        prompt: Put around every text, in training and later by the saved model. `{text}` says where the text
            goes; without it the prompt stands before the text.
        roles: text1 is a query and text2 a document; each gets the prompt that the model has for it, see
            `model.roles`. A prompt for either says so too.
        query_prompt: Stands before every query, in training and later by `encode_query` of the saved model;
            empty for what the model has.
        document_prompt: As `query_prompt`, for documents.
        average_with_backbone: a in [0, 1); the final weights are (1-a)·tuned + a·backbone, which keeps
            more of what the backbone knew.
        distil_epochs: Passes in which a fresh backbone learns the tuned embeddings of the domain's texts and
            its own of the texts that are kept, see `training.distillation`; 0 keeps the tuned weights. The
            training before it goes to its planned end, whatever `patience` is.
        keep_general: Whether general texts that come with the toolkit, and the user's own, keep their
            similarities (general texts their embeddings, where `distil_epochs` is set); those of `--keep` do
            in any case.
        keep_texts: So many of the texts to keep are encoded in each step; of no effect with `distil_epochs`.
        guard_loss: Points of Spearman x 100 that a guard may lose; weights that surely lose more are refused,
            see `training.guards`.
    """

    epochs: _Above0 = _OPEN
    batch_size: _Two = 64
    learning_rate: _Above0 = _OPEN
    max_seq_length: _Two | Literal["auto"] | None = None
    evals_per_epoch: _Count = 4
    patience: _Count = 8
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    source_block: _Count = 1
    chunk_size: _Count = 32
    gradient_cache: bool = False
    swap: bool = True
    prompt: str = ""
    roles: bool = False
    query_prompt: str = ""
    document_prompt: str = ""
    average_with_backbone: _Below1 = 0.0
    distil_epochs: _AtLeast0 = 0.0
    keep_general: bool = False
    keep_texts: _Two = 8
    guard_loss: _AtLeast0 = 1.0


SECTIONS: dict[str, Any] = {
    "objective": ObjectiveConfig,
    "backbone": BackboneConfig,
    "training": TrainingConfig,
}
"""The sections of a recipe, in the order in which it is written."""
_SECTION_OF = {f.name: name for name, section in SECTIONS.items() for f in fields(section)}


@dataclass(frozen=True, slots=True, config=_RULES)
class Recipe:
    """Everything that decides one run apart from the data and the backbone.

    Attributes:
        objective, backbone, training: The sections.
        arguments: Settings of the library's trainer, by its names, see `trainer_arguments`.
        description: What the recipe is for.
    """

    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    backbone: BackboneConfig = field(default_factory=BackboneConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    arguments: Annotated[dict[str, Any], AfterValidator(completed)] = field(
        default_factory=lambda: completed({})
    )
    description: str = ""

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read a recipe file; what it leaves out keeps its default.

        Raises:
            InputError: The file is missing or no TOML, or holds unknown keys or illegal values: all of
                them are named in one line.
        """
        try:
            tables, lines = today(tomllib.loads(path.read_text(encoding="utf-8")))
            recipe = cls.from_tables(tables)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise InputError(f"{path}: no such recipe file; check the path") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except ValueError as error:  # also a path that no file can have
            raise InputError(f"{path}: not a valid TOML file: {error}") from None
        for line in lines:
            log.warning("warning: %s: %s", path, line)
        return recipe

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> Self:
        """Make a recipe of what a TOML file of today holds, see `from_toml`; keys that are None stay open."""
        given = {
            name: {key: value for key, value in part.items() if value is not None}
            if isinstance(part, dict)
            else part
            for name, part in tables.items()
        }
        try:
            # As JSON pydantic takes a table for a section and a list for a tuple, and converts nothing else.
            return TypeAdapter(cls).validate_json(json.dumps(given, default=str))
        except ValidationError as error:
            at_place: dict[Any, list[Any]] = {}  # one for each kind that a value may be of
            for detail in error.errors(include_url=False):
                at_place.setdefault(detail["loc"][:2], []).append(detail)
            raise InputError("; ".join(map(_problem, at_place.values()))) from None

    def to_toml_text(self) -> str:
        """Return the recipe as TOML with all but open values spelt out; `from_toml` reads the same one back.

        Equal recipes have equal texts: two runs are the same if these are.
        """
        lines = [f"description = {_toml(self.description)}"] if self.description else []
        for name, values in ((name, asdict(self)[name]) for name in (*SECTIONS, ARGUMENTS)):
            lines += ["", f"[{name}]"] if lines else [f"[{name}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]
        return "\n".join(lines) + "\n"

    def with_overrides(self, overrides: Mapping[str, object]) -> Self:
        """Return the recipe with single values replaced by key, but for those that are None.

        What stands under the key `args` are settings of the trainer, by name: `[arguments]` takes them.

        Raises:
            InputError: A key is unknown or a value illegal.
        """
        tables = asdict(self)
        arguments: Any = overrides.get(ARGS) or {}
        tables[ARGUMENTS] |= {name: value for name, value in arguments.items() if value is not None}
        for key, value in overrides.items():
            if key == ARGS:
                continue
            check_key(key)
            if value is not None:
                tables[_SECTION_OF[key]][key] = value
        return self.from_tables(tables)


def _problem(details: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence for what pydantic refuses at one place in the tables of a recipe."""
    detail = details[0]
    *sections, key = place = [str(part) for part in detail["loc"][:2]] or [""]
    if detail["type"] == "unexpected_keyword_argument":
        if key in _SECTION_OF:
            return f"{key} belongs under [{_SECTION_OF[key]}]; move it there"
        known = [f.name for f in fields(SECTIONS[sections[0]] if sections else Recipe)]
        return _unknown(key, known, f"[{sections[0]}] key" if sections else "section")
    said = " or ".join(each["msg"] for each in details).replace(" or Input should be", " or")
    said = said.removeprefix("Value error, ")
    if detail["type"] == "value_error":
        return f"[{key}] {said}"
    also = " (fit --merge-back)" if key == MERGE_BACK else ""
    if detail["type"] == "bool_type":
        said = "write true or false"
    return f"{'.'.join(place)}{also}: {said}, got {detail['input']!r}"


def checked_objective(values: Mapping[str, Any], names: Mapping[str, str]) -> ObjectiveConfig:
    """Return an objective of values that a caller knows by other `names`.

    Raises:
        ValueError: A value is illegal: one line that has the caller's name for it.
    """
    try:
        return ObjectiveConfig(**values)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        said = detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        key = str(detail["loc"][0]) if detail["loc"] else ""
        place = f"{names.get(key, key)} " if key else ""
        got = f", got {detail['input']!r}" if key else ""
        raise ValueError(f"AngleLoss: {place}{said}{got}") from None


def parse_settings(
    settings: Sequence[str], options: Mapping[str, tuple[str, object]] | None = None
) -> dict[str, object]:
    """Return the values that a command line gives, by key, for `with_overrides`.

    Args:
        settings: `KEY=VALUE`, `SECTION.KEY=VALUE`, or `arguments.NAME=VALUE`, for a setting of the trainer;
            a value is read as TOML (`3`, `true`, `[128, 64]`), or else as a text.
        options: By key, the option of that value's own and what was given with it, None for nothing.

    Raises:
        InputError: A setting has no `=`, names a section that is not the key's, or is given as an option too;
            or an option has an illegal value.
    """
    values: dict[str, object] = {}
    arguments: dict[str, object] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        section, _, key = name.strip().rpartition(".")
        if not equals or not key:
            raise InputError(f"--set {setting}: write KEY=VALUE, such as --set batch_size=32")
        if section == ARGUMENTS:
            if why := why_refused(key):
                raise InputError(f"--set {setting}: {key} cannot be set here: {why}")
            if key in arguments:
                raise InputError(f"--set arguments.{key} is given twice; leave one out")
            arguments[key] = toml_value(text)
            continue
        check_key(key)
        if key in values:
            raise InputError(f"--set {key} is given twice; leave one out")
        if section and _SECTION_OF[key] != section:
            raise InputError(f"--set {setting}: {key} is in section {_SECTION_OF[key]!r}")
        values[key] = toml_value(text)
    given = {key: both for key, both in (options or {}).items() if both[1] is not None}
    for key in values.keys() & given.keys():
        raise InputError(f"{key} is given twice: leave out {given[key][0]} or --set {key}")
    for key, (flag, value) in given.items():
        _check_option(key, flag, value)
    values |= {key: value for key, (_, value) in given.items()}
    return values | ({ARGS: arguments} if arguments else {})


def _check_option(key: str, flag: str, value: object) -> None:
    """Raise an `InputError` by the option's own name if its value is illegal whatever else is given."""
    try:
        Recipe().with_overrides({key: value})
    except InputError as error:
        place, _, said = str(error).partition(": ")
        if place.startswith(f"{_SECTION_OF[key]}.{key}"):
            raise InputError(f"{flag}: {said.replace('Input should be', 'must be')}") from None


def toml_value(text: str) -> object:
    """Return what is written as TOML (`3`, `1e-4`, `true`), or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def builtin_recipes() -> dict[str, Path]:
    """Return the recipes that come with the toolkit, by name."""
    return {path.stem: path for path in sorted(packaged_folder("recipes").glob("*.toml"))}


def find_recipe(name_or_path: str) -> Path:
    """Return the file of a built-in recipe, or the path itself; what is neither is an InputError."""
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.parent != Path():
        return path
    builtin = builtin_recipes()
    if name_or_path not in builtin:
        hint = _did_you_mean(name_or_path, builtin) or f"; built in: {', '.join(builtin)}"
        raise InputError(f"no recipe is called {name_or_path!r}{hint}; or give a .toml file")
    return builtin[name_or_path]


def check_key(key: str) -> None:
    """Raise an InputError unless recipes have that key; of one that they had once it says where it went."""
    refuse_dropped([key])
    if key in _SECTION_OF:
        return
    if why := why_refused(key):
        raise InputError(f"{key} cannot be set here: {why}")
    # For a slip of the finger the library is not loaded, which takes seconds.
    if not difflib.get_close_matches(key, _SECTION_OF, n=1, cutoff=0.8) and is_argument(key):
        raise InputError(f"{key} is a setting of the trainer: write arguments.{key}")
    raise InputError(_unknown(key, _SECTION_OF, "recipe key"))


def _did_you_mean(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def _unknown(name: str, known: Collection[str], what: str) -> str:
    hint = _did_you_mean(name, known) or f" (known: {', '.join(known)})"
    return f"unknown {what} {name!r}{hint}"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    # JSON's values are legal in TOML; DEL is the one character that only TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
