"""The options of `gis`: those of crawl and build, and who is asked about doubtful comments.

Imports nothing heavy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

from angle_data.annotators.spec import EngineConfig
from angle_data.calling.options import check_values, option
from angle_data.errors import InputError
from angle_data.gis.crawl.selection import GisConfig

_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class AskConfig(EngineConfig):
    """Who is asked about doubtful comments, see `EngineConfig`; nobody where `model` is None."""

    model: str | None = option(  # type: ignore[assignment] # none is asked unless it is given
        "Ask this model what doubtful comments state; for its name and the options of who is asked, see "
        "angle-data llm-label. Needs no key without it.",
        None,
        flag="ask",
        metavar="MODEL",
        shown="no model",
    )
    seed: int | None = option("Sampling seed of --ask, if the server supports one.", None, flag="ask_seed")
    retry_rejected: bool = option(
        "Ask once more about each comment that the server refused or whose reply was of no use.", False
    )
    ask_guesses: bool = option(
        'Have --ask read guesses, too ("maybe a duplicate of #5?"): twice the requests for few links.',
        False,
    )


@dataclass(frozen=True, slots=True)
class GisCommandConfig:
    """All options of the command `gis`."""

    gis: GisConfig
    ask: AskConfig

    def __post_init__(self) -> None:
        check_values(self)
        gis, usual = self.gis, AskConfig()
        for one in () if self.asks else fields(AskConfig):
            if one.name != "temperature" and getattr(self.ask, one.name) != getattr(usual, one.name):
                flag = one.metadata["option"].flag or one.name
                raise InputError(f"--{flag.replace('_', '-')} says how to ask; give --ask MODEL with it")
        if self.asks and not (self.ask.model or "").strip():
            raise InputError("--ask is empty; give the name of a model, such as gpt-4o-mini")
        if self.asks and gis.strategy == "events":
            raise InputError("--ask reads comments, and --strategy events leaves them out; give only one")
        if gis.dry_run and gis.no_crawl and not self.asks:
            raise InputError("--dry-run estimates a crawl and --no-crawl skips it; give only one of them")

    @property
    def asks(self) -> bool:
        """Whether an annotator is asked."""
        return self.ask.model is not None

    @property
    def run(self) -> Path:
        """The run folder of the annotator, inside the output folder."""
        return self.gis.out / "asked" / _UNSAFE.sub("-", self.ask.model or "").strip(".-")
