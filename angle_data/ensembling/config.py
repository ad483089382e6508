"""The options of `ensemble`: each field is one. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from angle_data.calling.options import check_values, option, paths_option
from angle_data.errors import InputError
from angle_data.records import PURPOSES
from angle_data.splits import check_ratios, parse_ratios

STRATEGIES = {
    "concat": "angle_data.ensembling.strategies:concat",
    "principled": "angle_data.ensembling.strategies:principled",
    "vote": "angle_data.ensembling.strategies:vote",
}
LABELS = ("binary", "graded", "ordinal")
ANTONYM_SCORES: dict[str | None, float] = {None: 0.5, "opposites": 0.2, "topics": 0.5, "search": 0.5}
"""What the pairs are for -> the score of antonyms under ordinal and graded labels, where none is given."""


@dataclass(frozen=True, slots=True)
class EnsembleConfig:
    """Settings of one build; checked when made. None leaves a choice to what the runs hold, or means no cap.

    Labels need a lower end: without random pairs `binary` ones have their antonyms, the others have none.
    """

    runs: tuple[Path, ...] = paths_option(
        "Run folders written by llm-label.", metavar="RUN...", argument=True
    )
    out: Path = option("Output folder for dataset/, rejected.jsonl and report.json.")  # noqa: RUF009
    strategy: str | None = option(
        "concat: keep all that pass the basic checks. vote: let annotators check each other. principled: "
        "weigh annotators and grades, and find swapped polarities.",
        None,
        shown="principled with grades, else vote",
    )
    labels: str | None = option(
        "binary: 1 or 0. ordinal: by what was asked for, with antonyms between random pairs and synonyms. "
        "graded: by what was asked for and by the grades.",
        None,
        shown="graded with grades or degrees, else ordinal with --purpose, else binary",
    )
    purpose: str | None = option(
        "Whether opposites must be kept apart. opposites: yes. topics: no, they are related. search: text1 "
        "is a query, text2 answers it. Stored in the data set, so that fit uses the recipe of that name.",
        None,
        metavar="|".join(PURPOSES),
        shown="not stated",
    )
    pairs: tuple[Path, ...] = paths_option(
        "Additional pairs, mined or your own; only rows graded in --scores are used. Repeatable.",
        (),
        metavar="FILE",
    )
    scores: tuple[Path, ...] = paths_option("Run folder written by llm-score. Repeatable.", (), metavar="RUN")
    antonym_score: float | None = option(
        "Score of antonyms under ordinal and graded labels, 0 to 1.",
        None,
        shown=f"{ANTONYM_SCORES['opposites']:g} for opposites, else {ANTONYM_SCORES[None]:g}",
    )
    random_per_source: int | None = option(
        "Random pairs per source text.", None, shown="0 for binary, else 1", ge=0
    )
    max_per_source: int | None = option(
        "Maximum pairs per source text and polarity or degree.", None, shown="no cap", ge=1
    )
    ratios: tuple[float, ...] = option(
        "Shares of train, validation and test, split by source text.",
        (0.9, 0.1),
        shown="0.9,0.1",
        read=parse_ratios,
    )
    seed: int = option("Random seed for splits, random pairs and order.", 0)

    def __post_init__(self) -> None:
        for name, known in (("strategy", STRATEGIES), ("labels", LABELS), ("purpose", PURPOSES)):
            if (value := getattr(self, name)) not in (None, *known):
                raise InputError(f"unknown {name} {value!r}; choose one of {', '.join(known)}")
        if self.labels == "binary" and self.purpose == "topics":
            raise InputError(
                "--purpose topics is for --labels ordinal or graded; binary labels keep opposites apart"
            )
        if self.antonym_score is not None and not 0 <= self.antonym_score <= 1:
            raise InputError(f"--antonym-score must be between 0 and 1, got {self.antonym_score:g}")
        if self.labels == "binary" and self.antonym_score is not None:
            raise InputError(
                "--antonym-score is for --labels ordinal or graded; binary antonyms have score 0"
            )
        if self.pairs and not self.scores:
            raise InputError(
                "--pairs needs grades: make some with `angle-data llm-score --pairs FILE --out RUN` and give "
                "--scores RUN"
            )
        check_values(self)
        check_ratios(self.ratios)
