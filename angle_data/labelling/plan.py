"""`llm-label --plan`: how to spend a budget on annotation, from gains that were measured. Sends nothing.

What a way of spending brings stands in gains.toml beside this file, with where it was measured; what it costs
follows from the prompts, from the texts' lengths and from the model's price.
"""

from __future__ import annotations

import json
import math
import shlex
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from angle_data.annotators.models import price_of
from angle_data.annotators.spec import EngineConfig
from angle_data.errors import InputError
from angle_data.jsonl import write_jsonl
from angle_data.labelling.asking.budget import guess_tokens, usd_of
from angle_data.labelling.asking.journal import Tokens, read_journal
from angle_data.labelling.asking.session import Job
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.label import LabelJob
from angle_data.labelling.score import ScoreJob

_BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
_GAINS = Path(__file__).with_name("gains.toml")
_NEAR = 0.05  # gains are not known better than that
_SAMPLE = 500  # texts that tell what one takes


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing to ask about every text: `prompts` and `polarity` are the options, of so many `models`."""

    prompts: str
    polarity: str | None = None
    models: int = 1


@dataclass(frozen=True, slots=True)
class Way:
    """A way to spend money on texts, and what it brought.

    `graded` pairs a text are graded: those `mined` among the texts, or else all candidates. `gains` has the
    share of the purpose's best measured gain for each number of texts that was measured.
    """

    name: str
    asks: tuple[Ask, ...]
    graded: float
    mined: bool
    gains: Mapping[int, float]

    def gain(self, texts: int) -> float:
        """Return the share of the best measured gain that so many texts should bring.

        Straight lines over the logarithm of the texts lead through what was measured. Fewer texts than that
        bring in proportion; more go on as from the last two figures, for one doubling and no further.
        """
        known = sorted(self.gains)
        if texts <= known[0]:
            return self.gains[known[0]] * texts / known[0]
        after = next((number for number in known if number >= texts), known[-1])
        before = known[known.index(after) - 1]
        slope = (self.gains[after] - self.gains[before]) / math.log2(after / before)
        return self.gains[before] + slope * math.log2(min(texts, 2 * known[-1]) / before)


@dataclass(frozen=True, slots=True)
class Offer:
    """A way with the texts that the budget pays for, what that takes, and the share it should bring."""

    way: Way
    texts: int
    tokens: int
    usd: float | None
    gain: float


@dataclass(frozen=True, slots=True)
class SpendingPlan:
    """What was compared, most gain first, and the commands that carry the `proposed` offer out."""

    texts: int
    model: str
    measured_on: str
    offers: Sequence[Offer]
    proposed: Offer
    commands: Sequence[str]

    @property
    def counts(self) -> dict[str, Any]:
        """Return all of it as one table."""
        offers = [asdict(o) | {"way": o.way.name, "gain": round(o.gain, 3)} for o in self.offers]
        known = {"texts": self.texts, "model": self.model, "offers": offers}
        return {**known, "proposed": self.proposed.way.name, "commands": list(self.commands)}

    def __str__(self) -> str:
        """Show it to people."""
        width = max(len(offer.way.name) for offer in self.offers)
        lines = [f"  {'to ask for':<{width}} {'texts':>9} {'tokens':>12} {'USD':>10} {'gain':>7}"]
        for offer in self.offers:
            usd = "unknown" if offer.usd is None else f"{offer.usd:,.4f}"
            measured = min(offer.way.gains) <= offer.texts <= max(offer.way.gains)
            gain = f"{'' if measured else '~'}{100 * offer.gain:.0f} %"
            row = f"{offer.way.name:<{width}} {offer.texts:>9,} {offer.tokens:>12,} {usd:>10} {gain:>7}"
            lines.append(f"{'*' if offer is self.proposed else ' '} {row}")
        lines += [
            f"\ngain: share of the best gain measured, on {self.measured_on}; ~ for more or",
            "fewer texts than measured. Yours will differ: trust the order more than the figures.",
            "* the cheapest within five points, or a tenth, of the best. Tokens are estimated by characters;",
            "--pilot 50 measures them. MODEL-2 and MODEL-3 stand for other models, at the same price.",
            f"Grade {shlex.split(self.commands[-2])[-1]} before the last command.\n",  # what `grade` writes
            *self.commands,
        ]
        return "\n".join(lines)


def plan_spending(config: LabelConfig, texts: str | None = None) -> SpendingPlan:
    """Compare the ways to spend `config.budget_usd` on the texts for `config.purpose`; None is no limit.

    `texts` is what the commands call the file of texts, if not by its path.

    Raises:
        InputError: The texts cannot be used, a budget is given and no price is known, or it is too small.
    """
    assert config.purpose is not None, "LabelConfig wants one beside plan"
    job = LabelJob(config)
    price, count = price_of(job.spec), job.texts.count
    if price is None and job.spec.paid and config.budget_usd is not None:
        who = job.spec.checkpoint
        raise InputError(f"--budget-usd needs a price, and none is listed for {who}: give --price IN,OUT")
    offers = []
    for way in ways_of(config.purpose):
        takes = _tokens_of(way, config)
        usd = usd_of(price, takes) if price or job.spec.paid else 0.0
        number = count if not (usd and config.budget_usd) else min(count, int(config.budget_usd / usd))
        tokens = round(number * takes.total)
        offers.append(Offer(way, number, tokens, None if usd is None else number * usd, way.gain(number)))
    offers = sorted((offer for offer in offers if offer.texts), key=lambda offer: -offer.gain)
    if not offers:
        raise InputError(f"--budget-usd {config.budget_usd:g} does not pay for a single text; raise it")
    best = offers[0].gain
    near = [offer for offer in offers if offer.gain >= best - min(_NEAR, best / 10)]
    proposed = min(near, key=lambda offer: (offer.usd or 0.0, offer.tokens))
    commands = list(_commands(config, proposed, count, texts or str(config.texts)))
    measured_on = _measured(config.purpose)["on"]
    return SpendingPlan(count, job.spec.checkpoint, measured_on, offers, proposed, commands)


def ways_of(purpose: str) -> Iterator[Way]:
    """Yield what money can be spent on for a purpose."""
    for row in _measured(purpose)["ways"]:
        gains = {int(texts): float(share) for texts, share in row["gains"].items()}
        asks = tuple(Ask(**ask) for ask in row["asks"])
        yield Way(row["name"], asks, row.get("graded", 0.0), row.get("mined", False), gains)


def _measured(purpose: str) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(_GAINS.read_text(encoding="utf-8"))[purpose]
    return table


def _tokens_of(way: Way, config: LabelConfig) -> Tokens:
    """Return the tokens that a way takes for one text, by a sample of the texts."""
    limit, total = min(_SAMPLE, config.limit or _SAMPLE), Tokens()
    sample = replace(config, limit=limit, plan=False, purpose=None, budget_usd=None)
    with tempfile.TemporaryDirectory() as folder:
        run, jobs = Path(folder) / "run", list[tuple[Job, float]]()
        for ask in way.asks:
            job = LabelJob(replace(sample, prompts=ask.prompts, polarity=ask.polarity, out=run))
            jobs.append((job, ask.models / job.texts.count))
        if way.graded:
            # Neighbours in the file, which are as long as any other pairs.
            texts = [text.text for text in job.texts]
            file = Path(folder) / "pairs.jsonl"
            write_jsonl(file, ({"text1": a, "text2": b} for a, b in pairwise([*texts, "another text"])))
            grading = ScoreJob(ScoreConfig(config.engine, out=run, pairs=(file,)))
            jobs.append((grading, way.graded / grading.pairs.count))
        for each, times in jobs:
            with read_journal(each.run, each.spec.model) as journal:
                for request in each.requests(journal):
                    total += guess_tokens(request, each.reply_chars(request)) * times
    return total


def _commands(config: LabelConfig, offer: Offer, count: int, texts: str) -> Iterator[str]:
    """Yield what carries an offer out, down to the pairs that `fit` takes."""
    out = config.out
    field = [] if config.text_field == "text" else ["--text-field", config.text_field]
    identity = [] if config.id_field == "id" else ["--id-field", config.id_field]
    source = ["--texts", texts, *field]
    if offer.texts < count or config.limit:
        source += ["--limit", f"{offer.texts}"]
    runs: list[str] = []
    for ask in offer.way.asks:
        engine = config.engine
        polarity = ["--polarity", ask.polarity] if ask.polarity else []
        for number in range(1, ask.models + 1):
            name = (ask.prompts, ask.polarity, f"{number}" if ask.models > 1 else None)
            runs.append(f"{out / '-'.join(filter(None, name))}")
            if number > 1:
                engine = replace(engine, model=f"MODEL-{number}", checkpoint=None, revision=None)
            words = ["llm-label", *source, *identity, "--prompts", ask.prompts, *polarity]
            yield _shell(*words, *_given(engine), "--out", runs[-1])
    pairs: list[str] = []
    scores = ["--scores", f"{out / 'grades'}"] if offer.way.graded else []
    if offer.way.mined:
        pairs = ["--pairs", f"{out / 'mined.jsonl'}"]
        drawn = min(round(offer.way.graded * offer.texts), offer.texts * (offer.texts - 1) // 2)
        yield _shell("mine", *source, "--n", f"{drawn}", "--out", pairs[1])
    if offer.way.graded:
        grader = _given(config.engine, but=("temperature", "max_tokens"))  # llm-score has its own
        yield _shell("llm-score", *(pairs or runs), *grader, "--out", scores[1])
    assert config.purpose is not None, "LabelConfig wants one beside plan"
    merged = f"{out / 'pairs'}"
    yield _shell("ensemble", *runs, *pairs, *scores, "--purpose", config.purpose, "--out", merged)
    yield _shell("grade", merged, "--out", f"{out / 'my.csv'}")
    graded = ("--dev", f"{out / 'my-dev.csv'}", "--test", f"{out / 'my-test.csv'}", "--drop-leaks")
    fit = ("angle-train", "fit", "--data", merged, "--backbone", _BACKBONE, *graded)
    yield shlex.join((*fit, "--out", f"{out / 'model'}"))


def _given(config: EngineConfig, but: Sequence[str] = ()) -> Iterator[str]:
    """Yield the options of `config` that are not as by default, as words of a command."""
    for item in fields(config):
        look, value = item.metadata["option"], getattr(config, item.name)
        usual = item.default_factory() if callable(item.default_factory) else item.default
        if value == usual or item.name in but:
            continue
        flag = f"--{(look.flag or item.name).replace('_', '-')}"
        if isinstance(value, Mapping):
            each = [f"{key}={json.dumps(part, default=str)}" for key, part in value.items()]
        elif look.many:
            each = list(value)
        elif isinstance(value, tuple | list):
            each = [",".join(f"{part}" for part in value)]
        else:
            each = ["none" if value is None else f"{value}"]
        for part in each:
            yield from (flag, part)


def _shell(*words: str) -> str:
    return shlex.join(("angle-data", *words))
