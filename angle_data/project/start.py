"""Three answers to an `angle.toml`: which column, whether opposites are kept apart, and who writes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from angle_data.calling.defaults import PROJECT_FILE, Options, read_sections, shared_options, typed
from angle_data.calling.options import check_values, option
from angle_data.calling.rows import IN_MEMORY
from angle_data.errors import InputError
from angle_data.http import is_http
from angle_data.jsonl import write_text
from angle_data.labelling.arriving import STDIN, as_file
from angle_data.labelling.texts import TextFile
from angle_data.project.checking import OF_OTHER_PROGRAMS
from angle_data.records import PURPOSES
from angle_data.tables import TABLE_KINDS, base_name, number_of, read_table

_BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
MODEL = "gpt-4o-mini"
QUESTIONS = {
    "text_field": "Which column holds the text",
    "purpose": "Must opposites be kept apart, so that who looks for 'scaled up' does not get 'scaled down'?\n"
    "  yes: opposites    no, related texts belong together, as for duplicates: topics\n"
    "  neither, queries must find the texts that answer them: search\n"
    "Yes, no or search",
    "model": "Which model writes the training sentences",
}
"""What `start` must know, by the option that answers it."""

_PROMPTS = {"opposites": ("structured", "contrast"), "topics": ("degrees",), "search": ("queries",)}
# What is asked for, by purpose: docs/labels.md has what that was measured on.
_DEV_SHARE = 0.33  # dev pairs choose a checkpoint alone; to show that it is better takes more test pairs
_LOOKED_AT = 200  # rows, to tell which column holds texts
_NAMED = 3  # of the options that differ, so many are named


@dataclass(frozen=True, slots=True)
class StartConfig:
    """What `start` needs; None of the first three is a question, or with `yes` what is proposed."""

    texts: Path = option(  # noqa: RUF009
        f"Your texts: {TABLE_KINDS}, or .txt[.gz] (one per line); - for stdin; hub:ID for a data set of the "
        "hub. What is in no file is kept in the project.",
        metavar="FILE",
        argument=True,
    )
    text_field: str | None = option("Field or column with the text.", None, shown="asked")
    purpose: str | None = option(
        "opposites (they must be kept apart), topics (related texts belong together, as for duplicates), or "
        "search (queries must find the texts that answer them; the model writes the queries).",
        None,
        metavar="|".join(_PROMPTS),
        shown="asked",
    )
    model: str | None = option("Model that writes the training sentences.", None, shown="asked")
    grader: str | None = option("A second model, which grades what the first one wrote.", None, shown="none")
    search: str | None = option(
        "With --purpose search: queries of your own and what they should find, to judge the model by: folder "
        "in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/test.tsv), or hub:ID.",
        None,
        metavar="FOLDER",
        shown="pairs that you grade",
    )
    base_url: str | None = option(
        "OpenAI-compatible server that has the models.", None, shown="the models' public API"
    )
    price: str | None = option(
        "USD per million prompt and reply tokens, as for llm-label.",
        None,
        metavar="IN,OUT",
        shown="known price",
    )
    backbone: str = option("Model to be tuned: directory or hub id.", _BACKBONE)
    out: Path | None = option("Folder of the project.", None, shown="the name of FILE")  # noqa: RUF009
    yes: bool = option("Ask nothing: take what is proposed where an option is not given.", False)

    def __post_init__(self) -> None:
        check_values(self)
        if self.purpose not in (None, *PURPOSES):
            raise InputError(f"--purpose must be {' or '.join(PURPOSES)}, got {self.purpose!r}")
        if self.search is not None and self.purpose is None:
            object.__setattr__(self, "purpose", "search")  # it says so
        if self.search is not None and self.purpose not in (None, "search"):
            raise InputError(f"--search is for --purpose search, got {self.purpose}; leave one of them out")
        if self.base_url is not None and not is_http(self.base_url):
            raise InputError(
                f"--base-url {self.base_url!r} is not an address; give one, as in http://localhost:8000/v1"
            )

    @property
    def folder(self) -> Path:
        """Where the project is."""
        if self.out is None and self.texts == STDIN:
            raise InputError("texts from stdin have no name for the project: give --out DIR")
        return self.out if self.out is not None else Path(base_name(self.texts).removesuffix(".txt"))


def proposals(texts: Path) -> tuple[dict[str, str], list[str]]:
    """Return what is proposed as answers, and the columns of the texts; a file of lines has no columns.

    The column with the longest texts is the likeliest to hold them.
    """
    with TemporaryDirectory() as aside:
        return _proposals(as_file(texts, Path(aside)))


def _proposals(texts: Path) -> tuple[dict[str, str], list[str]]:
    proposed = {"text_field": "text", "purpose": PURPOSES[0], "model": MODEL}
    if texts.name.lower().removesuffix(".gz").endswith(".txt"):
        return proposed, []
    lengths: dict[str, int] = {}
    for _, row in islice(read_table(texts), _LOOKED_AT):
        for name, cell in row.items():
            is_text = isinstance(cell, str) and math.isnan(number_of(cell))
            lengths[name] = lengths.get(name, 0) + (len(cell) if is_text else 0)
    if not lengths:
        raise InputError(f"{texts} holds no rows; give a file with at least one")
    return proposed | {"text_field": max(lengths, key=lambda name: lengths[name])}, list(lengths)


def answered(config: StartConfig, answers: Mapping[str, str]) -> StartConfig:
    """Return the config with answers to some of its questions."""
    known: dict[str, Any] = dict(answers)
    return replace(config, **known)


class Started(NamedTuple):
    """A project's folder, the number of its texts, and whether it was made just now."""

    folder: Path
    texts: int
    is_new: bool


def write_project(config: StartConfig) -> Started:
    """Write the angle.toml of a project with all answers, unless there is one that says the same.

    Raises:
        InputError: The texts cannot be read or are numbers, a model's name does not say where to ask, the
            backbone is not there, or the folder holds something else.
    """
    with TemporaryDirectory() as aside:
        texts = TextFile(as_file(config.texts, Path(aside)), text_field=config.text_field or "text")
        _check_texts(texts, config)
    for model in filter(None, (config.model, config.grader)):
        check_can_ask(model, config.base_url)
    folder = config.folder
    path = folder / PROJECT_FILE
    if not path.exists() and config.out is None and folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} exists and is no project; give --out {folder} if it is to be one")
    file = as_file(config.texts, folder / IN_MEMORY)
    sections = sections_of(replace(config, texts=file, out=folder))
    seen_from_here = {"backbone": config.backbone, "out": str(folder / sections["fit"]["out"])}
    if config.search is not None:
        seen_from_here["test_search"] = config.search
    errors, _ = resolve_name(OF_OTHER_PROGRAMS["fit"])(sections["fit"] | seen_from_here, f"{path}: [fit]")
    if errors:
        raise errors[0]
    content = to_toml(sections)
    is_new = not path.exists()
    if is_new:
        write_text(path, content)
    elif others := _other_options(folder, content):
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        raise InputError(
            f"{path} exists, with other options: {', '.join(others[:_NAMED])}{more}; edit it, or give "
            "another --out"
        )
    return Started(folder, texts.count, is_new)


def _other_options(folder: Path, content: str) -> list[str]:
    """Return which options of a project's angle.toml are not as in `content`, whatever its comments are."""
    with TemporaryDirectory() as aside:
        write_text(Path(aside) / PROJECT_FILE, content)
        has, wanted = _by_place(read_sections(folder)), _by_place(read_sections(Path(aside)))
    missing = object()
    return [place for place in {**wanted, **has} if has.get(place, missing) != wanted.get(place, missing)]


def _by_place(sections: Mapping[str, Options]) -> dict[str, Any]:
    """Return the values of all options by where they stand, such as `[fit] out`; an empty section counts."""
    found = dict[str, Any]()
    for name, section in sections.items():
        runs = {f"{name}.{run}": options for run, options in section.items() if isinstance(options, dict)}
        for place, options in {name: shared_options(section), **runs}.items():
            found |= {f"[{place}] {typed(option)}": value for option, value in options.items()}
            if not options:
                found[f"[{place}]"] = None
    return found


def check_can_ask(model: str, base_url: str | None) -> None:
    """Raise an `InputError` about a name that does not say where to ask, or that cannot be asked here."""
    from angle_data.annotators.choice import choose_annotator
    from angle_data.annotators.spec import EngineConfig

    choose_annotator(EngineConfig(model, base_urls=(base_url,) if base_url else ()))


def _check_texts(texts: TextFile, config: StartConfig) -> None:
    """Raise an `InputError` about a column of numbers, such as ids."""
    first = [text.text for text in islice(texts, _LOOKED_AT)]
    if all(not math.isnan(number_of(text)) for text in first):
        raise InputError(
            f"{config.texts}: column {config.text_field!r} holds numbers ({', '.join(first[:3])} …) and no "
            "texts; name the column with the texts: --text-field"
        )


def sections_of(config: StartConfig) -> dict[str, dict[str, Any]]:
    """Return the options of every command, by command; paths are relative to the folder."""
    purpose = config.purpose or PURPOSES[0]
    texts = {"texts": os.path.relpath(config.texts, config.folder), "text_field": config.text_field or "text"}
    service = {"base_url": config.base_url, "price": config.price}
    runs = {name: {"prompts": name, "out": f"runs/{name}"} for name in _PROMPTS[purpose]}
    outs = [run["out"] for run in runs.values()]
    sections: dict[str, dict[str, Any]] = {
        "llm-label": texts | {"model": config.model or MODEL} | service | runs,
    }
    pairs: dict[str, Any] = {}
    made = "runs/pairs"  # what is trained on
    if config.grader:
        if purpose == "topics":  # mined pairs did harm where opposites are kept apart (docs/labels.md)
            sections["mine"] = texts | {"out": "runs/mined.jsonl"}
            pairs = {"pairs": ["runs/mined.jsonl"]}
        graded = {"runs": outs, "model": config.grader, "purpose": purpose, "pairs_per_call": 10}
        sections["llm-score"] = graded | {"out": "runs/grades"} | pairs | service
        pairs = {"scores": ["runs/grades"]} | pairs
    sections["ensemble"] = {"runs": outs, **pairs, "purpose": purpose, "out": "runs/pairs"}
    if purpose == "search":
        sections["ensemble"]["ratios"] = "1"  # all queries train: people's grades, or a search, judge
        made = "runs/negatives.jsonl"
        sections["mine"] = {"negatives": "runs/pairs", **texts, "out": made}
    judged: dict[str, Any] = {"dev": ["grades-dev.csv"], "test": ["grades-test.csv"]}
    if config.search is None:
        sections["grade"] = {"data": made, "n": 150, "dev_share": _DEV_SHARE, "out": "grades.csv"}
    else:
        judged = {"test_search": [_relative(config.search, config.folder)]}
    sections["fit"] = {
        "data": [made],
        "backbone": _relative(config.backbone, config.folder),
        **judged,
        "drop_leaks": True,
        "out": "model",
    }
    return sections


def judged_by(config: StartConfig) -> str:
    """Return what says whether the tuned model is better, in a sentence."""
    if config.search is not None:
        return f"how well the queries of {config.search} find their texts (nDCG@10), before and after"
    if config.purpose == "search":
        return (
            "pairs of a query and a text, which you grade: does it answer the query? Not by what a search "
            "finds: for that, give your own queries (--search FOLDER, docs/search.md)"
        )
    return "pairs of sentences, which you grade"


def _relative(name: str, folder: Path) -> str:
    """Return a backbone or search as the folder names it: a directory by its path from there, an id as is."""
    return os.path.relpath(name, folder) if Path(name).is_dir() else name


def to_toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Return sections as the text of an angle.toml; options that are None are left out."""
    lines = [
        "# A project of angle-toolkit: the options of its commands, by command; change what you like.",
        "# Paths are relative to this folder. `angle-data status` says where it is and what comes next.",
    ]
    for name, options in sections.items():
        runs = {key: value for key, value in options.items() if isinstance(value, dict)}
        lines += ["", f"[{name}]", *_lines(options.items())]
        for run, own in runs.items():
            lines += ["", f"[{name}.{run}]", *_lines(own.items())]
    return "\n".join(lines) + "\n"


def _lines(options: Iterable[tuple[str, Any]]) -> list[str]:
    """Return options as lines of TOML, whose texts, numbers and lists are written as in JSON."""
    plain = ((key, value) for key, value in options if value is not None and not isinstance(value, dict))
    return [f"{key.replace('_', '-')} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain]
