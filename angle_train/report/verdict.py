"""The verdict of a run: one object, made once, that every report, the terminal and the exit code read.

Which weights were saved was decided before, by the pairs that choose. The verdict says whether the test pairs
(or, without any, the pairs that chose) bear that out, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from angle_train.data.leaks import Leak
from angle_train.evaluation.compare import Result
from angle_train.report.right_shares import (
    RightShares,
    misled_sentence,
    power_sentences,
    shares_sentence,
)
from angle_train.report.text import advice, compared_line, finding, measured_items, tone
from angle_train.training.choosing import TOO_FEW
from angle_train.training.guards import Loss, agreement_sentence, from_details, worse_sentence

BACKBONE = "backbone"
TUNED = "tuned"
NOT_SAVED = "tuned, not saved"
_MAX_LEAKED_FRACTION = 0.01  # of the pairs of a set: with more, it cannot decide


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run's findings come to.

    Attributes:
        headline: The conclusion with the shares that the saved model has, in words for everybody.
        advice: The conclusion in one sentence: use the tuned model, or the backbone, and why.
        lines: All sentences: the advice, what got worse, then every set. Where no checkpoint was chosen there
            is the advice alone: no saved model has the other figures.
        worse: What got worse elsewhere, which is the second line; empty where no tuned weights were saved.
        evidence: What stands behind it: words that mislead, what the sample can show, shared texts.
        tone: `good`, `bad` or nothing, of the saved model.
        shown_better: Whether the tuned weights are better than the backbone on some judged set and worse on
            none. Sets of pairs that were learned from, or chosen by, show nothing.
        doubted: Whether the tuned weights were saved although they are not shown to be better.
    """

    headline: str
    advice: str
    lines: list[str]
    worse: str
    evidence: list[str]
    tone: str
    shown_better: bool
    doubted: bool


def judged_results(results: Sequence[Result]) -> list[Result]:
    """Return the tuned model's results that a verdict rests on: the test sets', or else the dev sets'."""
    tuned = [result for result in results if result.main and result.model in (TUNED, NOT_SAVED)]
    return [result for result in tuned if result.role == "test"] or tuned


def reach_verdict(kept: str, results: Sequence[Result], details: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a run; the arguments are those of `result.FitReport`."""
    judged = judged_results(results)
    compared = [result for result in judged if result.difference]
    places = {(result.role, result.pairs) for result in judged}
    leaks = [leak for found in details.get("leaks", ()) if _place(leak := Leak(**found)) in places]
    facts = _Facts(
        kept=kept,
        judged=judged,
        compared=compared,
        leaks=leaks,
        choice=details.get("choice", {}),
        by_parts="folds" in details,
        losses=from_details(guards := details.get("guards", {})),
        most=guards.get("most", 0.0),
    )
    shares = [RightShares(**found) for found in details.get("comparisons", ())]
    told = (BACKBONE, "", "") if kept == BACKBONE else (TUNED, BACKBONE, "before")
    misled = misled_sentence(shares, *told)
    shared = [
        f"{100 * leak.texts:.0f} % of the texts of {leak.name} are in {leak.origin} pairs too"
        + ("" if leak.pairs else ", with other partners")
        for leak in leaks
        if leak.texts
    ]
    head = facts.head()
    said = facts.advice()
    return Verdict(
        headline=f"{head}: {shares_sentence(shares, *told)}." if shares else f"{head}.",
        advice=said,
        lines=[said, *filter(None, [facts.worse()]), *facts.notes()],
        worse=facts.worse(),
        evidence=[*filter(None, [misled, facts.agreement()]), *power_sentences(judged), *shared],
        tone=tone(compared) if kept == TUNED else "",
        shown_better=facts.shown_better,
        doubted=facts.doubted,
    )


def _place(leak: Leak) -> tuple[str, str]:
    return leak.role, leak.name


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a verdict rests on."""

    kept: str
    judged: list[Result]
    compared: list[Result]
    leaks: list[Leak]
    choice: Mapping[str, Any]
    by_parts: bool
    losses: list[Loss]
    most: float

    @property
    def shown_better(self) -> bool:
        return tone(self.compared) == "good" and not self.learned

    @property
    def doubted(self) -> bool:
        return self.kept == TUNED and not self.shown_better

    @property
    def learned(self) -> bool:
        """Whether the tuned weights learned from the pairs of the verdict."""
        return any(leak.pairs > _MAX_LEAKED_FRACTION * leak.count for leak in self.leaks)

    @property
    def tested(self) -> bool:
        """Whether other pairs judge than those that chose."""
        return not all(result.role == "dev" for result in self.judged)

    @property
    def choosers(self) -> str:
        return "pairs held out in turn" if self.by_parts else "dev pairs"

    @property
    def judges(self) -> str:
        if not self.judged or self.judged[0].role != "test":
            return self.choosers
        return f"test {measured_items(self.judged)}"

    @property
    def doubt(self) -> str:
        good = tone(self.compared) == "good"
        return "hold too many training or dev pairs to show" if good else "do not show"

    def head(self) -> str:
        """Return the headline without figures."""
        found = {result.gain.verdict for result in self.compared}
        if self.kept == BACKBONE:
            return "Not shown to be better, so the backbone stays"
        if {"better", "worse"} <= found:
            return "Better on some pairs, worse on others"
        if "better" in found:
            return "Better" if self.tested and not self.learned else "Seemingly better"
        return "Worse" if "worse" in found else "Not shown to be better"

    def advice(self) -> str:
        """Return what to do, and why."""
        if self.kept == BACKBONE and self.choice["chosen"]:
            return (
                f"The {self.judges} {self.doubt} the tuned model to be better, so the untouched backbone "
                "was saved, as --require-better asks."
            )
        if self.kept == BACKBONE:
            return self.why_kept()
        if not self.compared:
            return "Nothing was compared with the backbone."
        if tone(self.compared) == "good":
            return advice(self.compared, "the backbone", seen=not self.tested or self.learned)
        found = finding(self.compared, "the backbone")
        if not self.tested:  # the pairs that chose cannot be called as a witness against their choice
            return (
                f"{found}: the {self.choosers} chose the tuned model with confidence "
                f"{self.choice['confidence']:.2f}, so it was saved; measure it on test pairs before you "
                "use it (--require-better saves the backbone)."
            )
        some = any(result.gain.verdict == "better" for result in self.compared)
        use = "use it only where it is better" if some else "use the backbone"
        return (
            f"{found}: {use}. The tuned model was saved because the {self.choosers} chose it "
            "(--require-better saves the backbone)."
        )

    def notes(self) -> list[str]:
        """Return the sentences behind the advice."""
        if self.kept == BACKBONE:
            return list(map(compared_line, self.compared)) if self.choice["chosen"] else []
        lines = list(map(compared_line, self.compared))
        if self.doubted and tone(self.compared) == "good":
            lines.insert(
                0,
                f"the saved model is the tuned one, and the {self.judges} {self.doubt} it to be better; "
                "--require-better saves the backbone instead",
            )
        if not self.tested:
            chose = "the number of steps" if self.by_parts else "the checkpoint"
            lines.append(f"these pairs also chose {chose}, so the gain is flattered; give --test pairs")
        return lines + [f"{leak.sentence()}, which flatters the model" for leak in self.leaks if leak.pairs]

    def worse(self) -> str:
        """Return what the saved weights lose elsewhere."""
        return worse_sentence(self.losses) if self.kept == TUNED and self.losses else ""

    def agreement(self) -> str:
        """Return how far the saved weights keep the backbone's order, where they are not its own."""
        return agreement_sentence(self.losses) if self.kept == TUNED else ""

    def why_kept(self) -> str:
        """Return why the pairs that choose chose the backbone."""
        choice = self.choice
        pairs = "held-out pairs" if self.by_parts else "dev pairs"
        figures = f"{100 * choice['best']:.1f} at best, backbone {100 * choice['simplest']:.1f}"
        end = "so the untouched backbone was saved."
        if choice.get("refused"):
            lost = ", ".join(loss.sentence() for loss in self.losses if loss.too_much(self.most))
            tried = "" if self.by_parts else ", with any share of the backbone"
            more = "--merge-back mixes in more of the backbone; " if self.by_parts else ""
            return (
                f"Tuning surely costs more than --guard-loss {self.most:g} elsewhere{tried}: {lost} (on the "
                f"{pairs}: {figures}), {end.removesuffix('.')}; {more}--guard-loss allows more."
            )
        if choice["confidence"] is None:
            known = f"Whether tuning helped is not known: the {pairs} {TOO_FEW}"
            return f"{known}. The untouched backbone was saved."
        if choice["best"] <= 0:  # however bad the backbone is
            return (
                f"Tuning did not help: the tuned weights rank the {pairs} no better than chance would "
                f"({figures}), {end}"
            )
        several = choice["compared"] > 1
        none = (
            f"of {choice['compared']} compared, none ranked" if several else "the tuned weights did not rank"
        )
        return (
            f"Tuning did not surely help: {none} the {pairs} better than the backbone by more than chance "
            f"explains (confidence {choice['confidence']:.2f}; {figures}), {end}"
        )
