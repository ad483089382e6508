"""The steps of `angle-data` as functions for notebooks and scripts: what `import angle_data` offers.

Each function is the command of its name: same options (with `_` for `-`; another is a `TypeError`), same
defaults, same files, same one-line errors, raised as `AngleError`. Nothing is printed, and logging is left
alone: `logging.basicConfig(level="INFO")` shows progress.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.calling.as_html import SHOWN_ROWS, table_html
from angle_data.calling.notebook import beside_loop, check_names
from angle_data.calling.options import Config, make, path_of, with_defaults
from angle_data.calling.row_errors import errors_naming_rows
from angle_data.calling.rows import IN_MEMORY, sources
from angle_data.errors import InputError
from angle_data.jsonl import read_jsonl
from angle_data.labelling.config import LabelConfig, ScoreConfig

if TYPE_CHECKING:
    from angle_data.ensembling.report import EnsembleSummary
    from angle_data.labelling.asking.forecast import SessionPlan
    from angle_data.labelling.pilot import PilotResult


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a .jsonl file as dictionaries: iterate as often as you like; nothing is held in memory."""

    path: Path

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (row for _, row in read_jsonl(self.path))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __fspath__(self) -> str:
        return str(self.path)

    def to_dataset(self) -> Any:
        """Return the rows as a `datasets.Dataset`."""
        from datasets import Dataset

        return Dataset.from_list(list(self))

    def _repr_html_(self) -> str:
        shown = list(islice(self, SHOWN_ROWS))
        return table_html([f"{self.path}: {len(shown):,} of {len(self):,} rows"], shown)


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A run folder of `label` or `score`, which `ensemble`, `score` and any open file take as a path.

    Attributes:
        path: The folder.
        model: The annotator's name.
        counts: What the command prints with `--json`.
        forecast: What `dry_run`, after which nothing was asked, or `pilot` found out.
    """

    path: Path
    model: str
    counts: Mapping[str, Any]
    forecast: SessionPlan | PilotResult | None = None

    def candidates(self) -> Rows:
        """Return the sentences that `label` kept: `source_id, source, polarity, text, model, key`."""
        return Rows(self.path / "candidates.jsonl")

    def grades(self) -> Rows:
        """Return the grades (0 to 5) that `score` kept: `text1, text2, score, model, key`."""
        return Rows(self.path / "scores.jsonl")

    @property
    def rejected(self) -> Rows:
        """What was dropped, each with its `reason` and the `raw` reply."""
        return Rows(self.path / "rejected.jsonl")

    def to_dataset(self) -> Any:
        """Return the candidates, or else the grades, as a `datasets.Dataset`."""
        grades = self.grades()
        return (grades if grades.path.is_file() else self.candidates()).to_dataset()

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        shown = (f"{name} {value:,}" for name, value in self.counts.items() if type(value) is int and value)
        forecast = "" if self.forecast is None else f"\n{self.forecast}"
        return f"Run {self.path} ({self.model}): {', '.join(shown)}{forecast}"

    def _repr_html_(self) -> str:
        grades = self.grades()
        rows = grades if grades.path.is_file() else self.candidates()
        names = ("text1", "text2", "score") if rows is grades else ("polarity", "source", "text")
        found = islice(rows, SHOWN_ROWS) if rows.path.is_file() else ()
        shown = [{name: row.get(name) for name in names} for row in found]
        return table_html(repr(self).splitlines(), shown)


@dataclass(frozen=True, slots=True, repr=False)
class Pairs:
    """A data set of labelled pairs as `ensemble` made it, which `angle_train.fit` takes as it is.

    Attributes:
        path: The folder with `dataset/`, `rejected.jsonl` and `report.json`.
        summary: The counts: `candidates` = `kept` + `dropped`, `flipped`, and the `pairs` of each split.
    """

    path: Path
    summary: EnsembleSummary

    @property
    def rejected(self) -> Rows:
        """The candidates that became no pair, each with its `reason`."""
        return Rows(self.path / "rejected.jsonl")

    def to_dataset(self) -> Any:
        """Return a `datasets.DatasetDict` of the splits: `text1, text2, label, score, weight` and more."""
        from datasets import Dataset, DatasetDict
        from pyarrow import parquet

        data = self.summary.dataset / "data"
        files = {split: next(data.glob(f"{split}-*.parquet")) for split in self.summary.pairs}
        return DatasetDict({split: Dataset(parquet.read_table(file)) for split, file in files.items()})

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        splits = (f"{split} {sum(kinds.values()):,}" for split, kinds in self.summary.pairs.items())
        summary = self.summary
        dropped = sum(summary.dropped.values())
        return (
            f"Pairs {self.path}: {', '.join(splits)}; of {summary.candidates:,} candidates {summary.kept:,} "
            f"kept ({summary.flipped:,} flipped) and {dropped:,} rejected"
        )

    def _repr_html_(self) -> str:
        names = ("text1", "text2", "score", "polarity", "models")
        split = next(iter(self.to_dataset().values()))
        rows = split.select(range(min(len(split), SHOWN_ROWS)))
        return table_html([repr(self)], ({name: row[name] for name in names if name in row} for row in rows))


@dataclass(frozen=True, slots=True, repr=False)
class Shown:
    """What `show` found; shows itself on a terminal and in a notebook.

    Attributes:
        counts: All counts by kind (`kept`, `flipped`, `rejected`), each with those of its reasons.
        items: The sample: dictionaries with `kind`, `group`, `text1`, `text2` and more.
        found: What the command prints with `--json`.
    """

    found: Mapping[str, Any]

    @property
    def counts(self) -> Mapping[str, Any]:
        """All counts by kind."""
        counts: Mapping[str, Any] = self.found["kinds"]
        return counts

    @property
    def items(self) -> list[dict[str, Any]]:
        """The sample."""
        items: list[dict[str, Any]] = self.found["items"]
        return items

    def __repr__(self) -> str:
        from angle_data.look.show import as_text

        return as_text(dict(self.found))

    def _repr_html_(self) -> str:
        said = [self.found["title"]]
        for kind, row in self.counts.items():
            parts = ", ".join(f"{part} {count:,}" for part, count in row["of"].items())
            said.append(f"{kind} {row['count']:,}" + (f": {parts}" if parts else ""))
        names = ("kind", "group", "marks", "text1", "text2")
        return table_html(said, ({name: item[name] for name in names} for item in self.items))


def label(texts: Any, *, model: str, out: Any, **options: Any) -> Run:
    """Let a language model write synonymous and opposite sentences: the command `angle-data llm-label`.

    Args:
        texts: A list of strings, or of dictionaries with `text` and perhaps `id`; a `datasets.Dataset`; or
            the path of a file.
        model: A name that says where it is asked (`gpt-4o-mini`, `claude-…`, `ollama/NAME` …), `chatgpt`,
            `llama`, `chatglm`, or with `base_url` any name.
        out: The run folder; the same call goes on where it stopped.
        **options: Those of the command: `size=2`, `polarity="synonym"`, `prompts="contrast"`,
            `max_usd=5`, `base_url="http://localhost:8000/v1"`, `param={"reasoning_effort": "low"}`,
            `pilot=50`, `dry_run=True` … Options that can be repeated take one value or a list.

    Raises:
        AngleError: As of the command: `InputError` for what must be mended, `StoppedError` where the same
            call goes on, `AnnotatorError` for a service that cannot be used. Every reply so far is kept.
        KeyboardInterrupt: Ctrl-C, or the notebook's stop button: replies in flight are waited for, a second
            one stops at once.
    """
    from angle_data.labelling.command import llm_label
    from angle_data.labelling.label import label as run_label
    from angle_data.labelling.pilot import pilot, plan_label

    given = {**options, "model": model, "out": out, "texts": texts}
    dry_run = options.get("dry_run")
    with _made(LabelConfig, "label", llm_label, given) as config:
        if dry_run or config.pilot is not None:
            forecast = beside_loop(lambda: plan_label(config) if dry_run else pilot(config))
            return Run(config.out, model, forecast.counts, forecast)
        return Run(config.out, model, beside_loop(lambda: run_label(config)).counts)


def score(runs: Any = (), *, model: str, out: Any, pairs: Any = None, **options: Any) -> Run:
    """Let a language model grade pairs from 0 (unrelated) to 5 (same meaning): `angle-data llm-score`.

    Args:
        runs: Runs of `label`, or their folders, whose candidates are graded.
        model: As for `label`.
        out: The run folder; the same call goes on where it stopped.
        pairs: Further pairs: what `mine` returned, a list of dictionaries (`text1, text2`), a
            `datasets.Dataset`, or paths of files.
        **options: Those of the command, such as `pairs_per_call=10`, `limit=100`, `pilot=50`, `dry_run=True`.
    """
    from angle_data.labelling.command import llm_score
    from angle_data.labelling.pilot import pilot
    from angle_data.labelling.score import plan_score
    from angle_data.labelling.score import score as run_score

    given = {**options, "model": model, "out": out, "runs": runs, "pairs": pairs}
    with _made(ScoreConfig, "score", llm_score, given) as config:
        if (dry_run := options.get("dry_run")) or config.pilot is not None:
            forecast = beside_loop(lambda: plan_score(config) if dry_run else pilot(config))
            return Run(config.out, model, forecast.counts, forecast)
        return Run(config.out, model, beside_loop(lambda: run_score(config)).counts)


def ensemble(runs: Any = (), *, out: Any, pairs: Any = None, **options: Any) -> Pairs:
    """Merge annotators' candidates into one labelled data set: the command `angle-data ensemble`.

    Args:
        runs: Runs of `label`, or their folders.
        out: The folder to write; an earlier data set there is replaced.
        pairs: Further pairs, as for `score`; `scores` must grade them.
        **options: Those of the command: `labels="ordinal"`, `strategy="vote"`, `scores=[graded]`,
            `ratios=(0.8, 0.1, 0.1)`, `seed=0` …
    """
    from angle_data.ensembling.build import build_ensemble
    from angle_data.ensembling.command import ensemble as command
    from angle_data.ensembling.config import EnsembleConfig

    given = {**options, "out": out, "runs": runs, "pairs": pairs}
    with _made(EnsembleConfig, "ensemble", command, given) as config:
        return Pairs(config.out, build_ensemble(config))


def mine(texts: Any = None, *, out: Any, **options: Any) -> Rows:
    """Draw pairs to be graded by `score`, among texts or what was written for each: `angle-data mine`.

    Args:
        texts: As for `label`; None where there are `runs`.
        out: The .jsonl file to write.
        **options: Those of the command: `n=2000`, `seed=0`, `text_field="text"`, `embeddings="texts.npy"`;
            `runs`, one or several that `label` returned, for pairs among what was written for each text;
            `negatives`, a file of queries with what answers them, for hard negatives among the texts.

    Returns:
        The pairs: `text1`, `text2`, `kind`; or the negatives: `query`, `positive`, `negatives`, `purpose`.
    """
    from angle_data.labelling.command import mine as command
    from angle_data.labelling.mine import MineConfig
    from angle_data.labelling.mine import mine as draw

    with _made(MineConfig, "mine", command, {**options, "out": out, "texts": texts}) as config:
        draw(config)
        return Rows(config.out)


def show(data: Any, **options: Any) -> Shown:
    """Look at a run or a data set before training: all counts and a sample, the command `angle-data show`.

    Args:
        data: What `label`, `score`, `mine` or `ensemble` returned, or a path.
        **options: Those of the command: `n=20`, `reason="echo"`, `annotator="gpt-4o"`, `seed=0`,
            `html="pairs.html"`, which also writes the page.
    """
    from angle_data.look.command import run_show
    from angle_data.look.command import show as command
    from angle_data.look.config import ShowConfig

    known = with_defaults(command, {})
    check_names("show", options, known)
    found, _ = run_show(make(ShowConfig, known | options | {"data": data}))
    return Shown(found)


def grade(data: Any = None, *, out: Any = None, finish: Any = None, **options: Any) -> dict[str, Any]:
    """Draw pairs and grade them on a page that opens in the browser: the command `angle-data grade`.

    The call returns when the page is finished there; the same call goes on with the grades so far.

    Args:
        data: What `ensemble` or `score` returned, or the path of a data set.
        out: The CSV that holds the grades.
        finish: In place of both, a CSV that was filled in elsewhere: its dev and test pairs are written.
        **options: Those of the command: `n=150`, `dev_share=0.5`, `seed=0`, `csv=True` (serve nothing),
            `no_browser=True`, `graded=["earlier.csv"]`, `second="theirs.csv"` …

    Returns:
        What the command prints with `--json`: how many pairs are graded, and the `files` for `fit`; with
        `finish` the number of pairs by file, and `agreement` where there is a `second` grader.
    """
    from angle_data.look.command import grade as command
    from angle_data.look.command import run_grade
    from angle_data.look.config import GradeConfig

    known = with_defaults(command, {})
    check_names("grade", options, known)
    given = known | options | {"data": data, "out": out, "finish": finish}
    found: dict[str, Any] = run_grade(make(GradeConfig, given))[0]
    return found


@contextmanager
def _made(
    config: type[Config], function: str, command: Callable[..., None], given: dict[str, Any]
) -> Iterator[Config]:
    """Yield the config of what was given to a function; rows in memory are a file, which may be kept."""
    known = with_defaults(command, {})
    check_names(function, given, known)
    given = known | given
    name = "texts" if "texts" in known else "pairs"
    if function == "label" and given[name] is None:
        raise InputError(f"{name}: got None; give a path, or a list of strings or dictionaries")
    passing = function == "mine" or given.get("dry_run")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if passing else path_of(given["out"]) / IN_MEMORY
        files = sources(given[name], folder, name, given.get("text_field"))
        given[name] = files if name == "pairs" else next(iter(files), None)
        with errors_naming_rows(folder):
            yield make(config, given)
