"""`llm-label --plan`: how to spend a budget, from prices, lengths of texts and what was measured.

`GAINS` says what share of the gain of full supervision (human grades for thousands of pairs) each way of
asking brought, by the number of sentences that were asked about. Sends nothing.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.models import Price, price_of
from angle_data.errors import InputError
from angle_data.labelling.asking.budget import estimate
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import plan_label
from angle_data.labelling.prompts import load_prompt
from angle_data.labelling.texts import TextFile
from angle_data.resources import packaged_folder

GAINS: tuple[tuple[int, str, float], ...] = (
    # STS-B, three layers of MiniLM, test; (score - untuned) / (supervised - untuned) with 55.9 and 80.3.
    (300, "polarity", 0.68),  # 72.4: three annotators, vote
    (300, "degrees", 0.72),  # 73.3 to 73.9: one annotator
    (300, "degrees+grades", 0.75),  # 74.3: and 1,424 mined pairs, graded
    (300, "all", 0.795),  # 75.3: and the synonyms of three annotators
)
"""Sentences, what was asked, and the share of the supervised gain that it brought; dev alone chose."""

_ANNOTATORS = 3  # who wrote synonyms and antonyms, where they were measured
_PAIRS_PER_TEXT = 5  # mined and graded for every sentence
_PAIRS_PER_CALL = 10
_PARTS = {
    "polarity": ("polarity",),
    "degrees": ("degrees",),
    "degrees+grades": ("degrees", "grades"),
    "all": ("degrees", "grades", "polarity"),
}
_SAMPLE = 500  # texts whose lengths stand for all
_SLACK = 1.3  # of --max-usd over the forecast, which is made from characters


@dataclass(frozen=True, slots=True)
class Offer:
    """One way to spend the budget; `share` of the supervised gain is None where it was not measured."""

    what: str
    texts: int
    pairs: int
    requests: int
    usd: float
    share: float | None


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The ways to spend a budget, the best first, and the commands of that one."""

    budget_usd: float
    texts: int
    offers: tuple[Offer, ...]
    commands: tuple[str, ...]

    @property
    def counts(self) -> dict[str, Any]:
        """Return all of it as one table."""
        return asdict(self)

    def __str__(self) -> str:
        """Show the offers as a table, then what to run."""
        lines = [f"{'ask for':<15} {'texts':>7} {'mined pairs':>11} {'requests':>9} {'USD':>8}  gain"]
        for offer in self.offers:
            gain = "not measured for so few" if offer.share is None else f"{100 * offer.share:.1f} %"
            row = f"{offer.texts:>7,} {offer.pairs:>11,} {offer.requests:>9,} {offer.usd:>8.2f}  {gain}"
            lines.append(f"{offer.what:<15} {row}")
        sizes = " and ".join(map(str, sorted({sentences for sentences, _, _ in GAINS})))
        best = self.offers[0].what
        lines += [
            f"of {self.texts:,} texts, for at most {self.budget_usd:g} USD; tokens are estimated from "
            "characters, and the time is not known",
            f"gain: the share of what full supervision gains; measured on {sizes} sentences of STS-B",
            f"recommended: {best}"
            + (", the sentences by three models" if "polarity" in _PARTS[best] else ""),
        ]
        return "\n".join([*lines, *(f"  {command}" for command in self.commands)])


def plan_budget(config: LabelConfig) -> BudgetPlan:
    """Propose how to spend `config.budget_usd` on `config.texts`; reads files only.

    Raises:
        InputError: There is no budget or no price, or the budget is less than what one text costs.
    """
    budget = config.budget_usd
    if budget is None or not 0 < budget < math.inf:
        raise InputError(f"--plan needs --budget-usd, more than 0, got {budget}")
    spec = choose_annotator(config.engine)
    price = price_of(spec)
    if price is None:
        raise InputError(
            f"--plan needs a price, and that of {spec.checkpoint!r} is not known: give --price IN,OUT"
        )
    texts = TextFile(config.texts, text_field=config.text_field, id_field=config.id_field, limit=config.limit)
    costs = _costs(config, price, [item.text for item in islice(texts, _SAMPLE)])
    offers = []
    for what, parts in _PARTS.items():
        each = sum(costs[part][1] for part in parts)
        count = texts.count if not each else min(texts.count, int(budget / each))
        if count:
            pairs = min(_PAIRS_PER_TEXT * count, count * (count - 1) // 2) if "grades" in parts else 0
            requests = math.ceil(count * sum(costs[part][0] for part in parts))
            offers.append(Offer(what, count, pairs, requests, count * each, _share(what, count)))
    if not offers:
        least = min(cost for part, (_, cost) in costs.items() if part != "grades")
        raise InputError(f"--budget-usd {budget:g} pays for no text; one costs at least {least:.6f} USD")
    offers.sort(key=lambda offer: (offer.share or 0.0, _share(offer.what, 10**9) or 0.0), reverse=True)
    return BudgetPlan(budget, texts.count, tuple(offers), tuple(_commands(config, offers[0], costs)))


def _costs(config: LabelConfig, price: Price, sample: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the requests and USD that one text takes in each part."""
    # In a folder without a journal: what an earlier run took may be of other prompts.
    asked = replace(config, out=config.out / ".plan", limit=len(sample))
    degrees = replace(asked, prompts="degrees", size=None, polarity=None)
    if config.prompts == "degrees":
        asked = replace(asked, prompts="paper")
    costs = {}
    for part, each in (("polarity", asked), ("degrees", degrees)):
        plan = plan_label(each)
        usd = price.of(plan.prompt_tokens, plan.completion_tokens)
        times = _ANNOTATORS if part == "polarity" else 1
        costs[part] = (times * plan.requests / len(sample), times * usd / len(sample))
    path = packaged_folder("prompts") / "score" / "pairs.txt"
    prompt = load_prompt(path, known=("pairs",), required=("pairs",))
    tokens = sum(map(estimate, sample)) / len(sample)
    per_pair = price.of(estimate(prompt.template) / _PAIRS_PER_CALL + 2 * tokens + 8, 8)
    costs["grades"] = (_PAIRS_PER_TEXT / _PAIRS_PER_CALL, _PAIRS_PER_TEXT * per_pair)
    return costs


def _share(what: str, texts: int) -> float | None:
    """Return the share of the gain; between measured numbers of texts it follows their logarithm."""
    points = sorted((sentences, share) for sentences, name, share in GAINS if name == what)
    if not points or texts < points[0][0]:
        return None
    for (few, low), (many, high) in pairwise(points):
        if texts < many:
            return low + (high - low) * math.log(texts / few) / math.log(many / few)
    return points[-1][1]


def _commands(config: LabelConfig, best: Offer, costs: dict[str, tuple[float, float]]) -> list[str]:
    """Return the commands of an offer, to be run one after the other."""
    engine = config.engine
    who = ["--model", engine.model]
    who += [part for url in engine.base_urls for part in ("--base-url", url)]
    if engine.price is not None:
        who += ["--price", "{:g},{:g}".format(*engine.price)]
    model = shlex.join(who)
    folder = Path("runs") / engine.model.replace("/", "-")
    field = ["--text-field", config.text_field] if config.text_field != "text" else []
    texts = shlex.join(["--texts", str(config.texts), *field])
    slack = min(_SLACK, (config.budget_usd or 0.0) / best.usd) if best.usd else _SLACK

    def path(name: str) -> str:
        return shlex.quote(f"{folder}-{name}")

    def most(part: str, share: float = 1.0) -> str:
        return f"--max-usd {max(0.01, slack * share * best.texts * costs[part][1]):.2f}"

    parts, lines, runs, graded = _PARTS[best.what], [], [], ""
    label = f"angle-data llm-label {texts} --limit {best.texts}"
    if "degrees" in parts:
        runs.append(path("degrees"))
        lines.append(f"{label} {model} --prompts degrees --out {runs[-1]} {most('degrees')}")
    if "polarity" in parts:
        runs.append(path("sentences"))
        lines.append(f"{label} {model} --out {runs[-1]} {most('polarity', 1 / _ANNOTATORS)}")
        lines += [f"{label} --model {name} --out runs/{name}" for name in ("SECOND-MODEL", "THIRD-MODEL")]
        runs += ["runs/SECOND-MODEL", "runs/THIRD-MODEL"]
    if "grades" in parts:
        lines.append(f"angle-data mine {texts} --out mined.jsonl --n {best.pairs}")
        lines.append(
            f"angle-data llm-score --pairs mined.jsonl --pairs-per-call {_PAIRS_PER_CALL} {model} "
            f"--out {path('grades')} {most('grades')}"
        )
        graded = f" --scores {path('grades')} --pairs mined.jsonl"
    labels = "graded" if "degrees" in parts else "ordinal"
    return [*lines, f"angle-data ensemble {' '.join(runs)}{graded} --labels {labels} --out pairs"]
