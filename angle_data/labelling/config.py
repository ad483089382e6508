"""The options of `llm-label`, `llm-score` and `probe`; those of the asking are in `annotators.spec`.

Each field is an option of its command: add one here, with its default and help. Imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from angle_data.annotators.spec import EngineConfig
from angle_data.calling.options import check_values, option, paths_option
from angle_data.errors import InputError
from angle_data.records import PURPOSES, Polarity
from angle_data.tables import TABLE_KINDS

POLARITIES: dict[str, tuple[Polarity, ...]] = {
    "both": ("synonym", "antonym"),
    "synonym": ("synonym",),
    "antonym": ("antonym",),
}
"""Value of --polarity -> the polarities that are asked for."""


_MAX_PAIRS_PER_CALL = 50
_OUT = "Run folder; rerun the same command to resume."
_PILOT = (
    "Ask about this many {0} first, sampled from the whole file, and forecast tokens, cost, time and yield "
    "for all; the same command without --pilot asks about the rest."
)


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """Everything that `llm-label` needs; `engine` says who is asked. Checks itself and holds no secret."""

    engine: EngineConfig
    texts: Path = option(  # noqa: RUF009
        f"Texts: {TABLE_KINDS}, or .txt[.gz] (one per line); - for stdin; hub:ID for a data set of the hub."
    )
    out: Path = option(_OUT, shown="runs/MODEL")  # noqa: RUF009
    size: int | None = option(
        "Sentences to request per text and polarity.", None, shown="2, or 3 queries", ge=1
    )
    polarity: str | None = option("Polarity to request: both, synonym or antonym.", None, shown="both")
    prompts: str = option(
        "structured (keeps facts and terms, replies in JSON), contrast (for opposites that must "
        "be kept apart: paraphrases in different words, contradictions in the same words), degrees (one "
        "sentence per degree of similarity, 5 to 1), queries (search queries that the text answers), paper "
        "(as published), or a folder of prompts.",
        "structured",
    )
    text_field: str = option("Field or column with the text.", "text")
    id_field: str = option("Field or column with the id, if any.", "id")
    limit: int | None = option("Use at most this many texts, from the start.", None, ge=1)
    pilot: int | None = option(_PILOT.format("texts"), None, ge=1)
    retry_rejected: bool = option(
        "Retry once each request that the server refused or whose reply gave no sentence at all.", False
    )

    def __post_init__(self) -> None:
        check_values(self)
        if self.polarity is not None and self.polarity not in POLARITIES:
            raise InputError(f"--polarity must be one of {', '.join(POLARITIES)}, got {self.polarity!r}")


@dataclass(frozen=True, slots=True)
class ScoreConfig:
    """Everything that `llm-score` needs; `engine` says who is asked. Checks itself and holds no secret."""

    engine: EngineConfig
    out: Path = option(_OUT)  # noqa: RUF009
    runs: tuple[Path, ...] = paths_option(
        "llm-label run folders with the candidates to grade.", (), metavar="RUN", argument=True
    )
    pairs: tuple[Path, ...] = paths_option(
        f"Pairs: {TABLE_KINDS} with text1 and text2, sentence1 and sentence2, or source and text "
        "(candidates.jsonl). Repeatable.",
        (),
        metavar="FILE",
        shown="none",
    )
    pairs_per_call: int = option(
        f"Maximum pairs per request, 1 to {_MAX_PAIRS_PER_CALL}; the prompt is sent once for all of them.",
        1,
        ge=1,
        le=_MAX_PAIRS_PER_CALL,
    )
    purpose: str | None = option(
        "What the grades are for, as in ensemble. opposites: opposites must be kept apart and get 1 at most. "
        "topics: they are about the same subject and get 2. search: does one text, a passage, answer the "
        "other, a query?",
        None,
        metavar="|".join(PURPOSES),
        shown="as topics",
    )
    prompt: Path | None = option(  # noqa: RUF009
        "Your own prompt in a text file, in place of the one of --purpose; {pairs} stands for the pairs. "
        "answers is that of --purpose search.",
        None,
        shown="by --purpose",
    )
    limit: int | None = option("Use at most this many pairs, from the start.", None, ge=1)
    pilot: int | None = option(_PILOT.format("pairs"), None, ge=1)
    retry_rejected: bool = option(
        "Retry once each pair set aside because no reply gave it a grade or the server refused it.",
        False,
    )

    def __post_init__(self) -> None:
        check_values(self)
        if self.purpose not in (None, *PURPOSES):
            raise InputError(f"--purpose must be one of {', '.join(PURPOSES)}, got {self.purpose!r}")
        if self.purpose is not None and self.prompt is not None:
            raise InputError("--purpose and --prompt both choose the prompt; leave one out")


@dataclass(frozen=True, slots=True)
class ProbeConfig:
    """Everything that `probe` needs: who is asked, as for `llm-label`. Checks itself and holds no secret."""

    engine: EngineConfig
    out: Path | None = option(  # noqa: RUF009
        "Run folder to come: what was found is kept there, and llm-label and llm-score begin with it.",
        None,
        shown="none",
    )

    def __post_init__(self) -> None:
        check_values(self)
