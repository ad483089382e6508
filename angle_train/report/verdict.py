"""The verdict of a run: one rule, applied once, that decides which weights are saved where, and says so.

The rule: tuned weights take the backbone's place if they are shown to be better, which means that the 95 %
interval of the gain lies above 0 on the pairs that judge. These are the test pairs; without any they are the
pairs that chose the checkpoint, with all that was compared on them taken into account (`choosing.SURE` is
the same level). Weights that guards refuse are never taken, nor are those that rank the pairs on which they
are better no better than chance. Either way both are saved: tuned weights that are not taken are in
`tuned/`. The terminal, every report and the exit code say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from angle_train.data.leaks import Leak
from angle_train.evaluation.compare import WORD_OVERLAP, Result
from angle_train.evaluation.search import NDCG
from angle_train.report.next_step import (
    TEST_SEARCH,
    TOO_SMALL,
    gaining,
    grade_more,
    grade_test_pairs,
    promising,
)
from angle_train.report.right_shares import (
    RightShares,
    misled_sentence,
    power_sentences,
    shares_sentence,
)
from angle_train.report.text import advice, compared_line, finding, measured_items, tone
from angle_train.training.choosing import SURE, beside_sentence, too_few_to_choose
from angle_train.training.guards import (
    Loss,
    Weighed,
    agreement_sentence,
    costs_sentence,
    from_details,
    spared_sentence,
    worse_sentence,
)

BACKBONE = "backbone"
TUNED = "tuned"
BESIDE = "tuned, in tuned/"
"""What results call tuned weights where the backbone stayed: they are saved in a folder of that name."""
IN_TUNED = "The tuned weights are in tuned/, for you to take all the same."
IN_TUNED_HARMFUL = "The tuned weights are in tuned/, to be looked at and not to be used."
_MOST_KNOWN = 0.5  # of the texts of a set: with more, it says little of new texts
_MAX_LEAKED_FRACTION = 0.01  # of the pairs of a set: with more, it cannot decide


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run's findings come to.

    Attributes:
        headline: The conclusion with the shares that the saved model has, in words for everybody.
        advice: The conclusion in one sentence: use the tuned model, or the backbone, and why.
        lines: All sentences: the advice, what got worse, what to do next, then every set.
        worse: What got worse elsewhere, which is the second line: of the tuned weights, wherever they are.
        spared: Why more of the backbone is mixed in than planned; empty where it is not.
        next: What to do next, and how much work that is; empty where the tuned model is to be used.
        evidence: What stands behind it: words that mislead, what the sample can show, shared texts.
        tone: `good`, `bad` or nothing, of the saved model.
        flattered: Why the pairs that judge show nothing, if the model learned from them.
    """

    headline: str
    advice: str
    lines: list[str]
    worse: str
    spared: str
    next: str
    evidence: list[str]
    tone: str
    flattered: str


def judged_results(results: Sequence[Result]) -> list[Result]:
    """Return the tuned model's results that a verdict rests on: the test sets', or else the dev sets'."""
    tuned = [result for result in results if result.main and result.model in (TUNED, BESIDE)]
    return [result for result in tuned if result.role == "test"] or tuned


def chosen_on(results: Sequence[Result]) -> str:
    """Return what the weights were chosen on: `pairs`, `queries` of dev searches, or both."""
    kinds = {result.metric for result in results if result.role == "dev" and result.main}
    return " and ".join([*["pairs"] * (kinds != {NDCG}), *["queries"] * (NDCG in kinds)])


def takes_tuned(results: Sequence[Result], details: Mapping[str, Any]) -> bool:
    """Return whether tuned weights take the backbone's place, see above; arguments as of `reach_verdict`."""
    return _facts(TUNED, results, details).better


def reach_verdict(kept: str, results: Sequence[Result], details: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a run; the arguments are those of `result.FitReport`."""
    facts = _facts(kept, results, details)
    shares = [RightShares(**found) for found in details.get("comparisons", ())]
    told = (TUNED, BACKBONE, "before") if kept == TUNED else (BACKBONE, TUNED, "with the tuned weights")
    misled = misled_sentence(shares, *told)
    shared = [
        f"{100 * leak.texts:.0f} % of the texts of {leak.name} are in {leak.origin} pairs too"
        + ("" if leak.pairs else ", with other partners")
        + ("; how it does on texts that are new to it was not measured" if leak.texts > _MOST_KNOWN else "")
        for leak in facts.leaks
        if leak.texts
    ]
    head = facts.head()
    said = facts.advice()
    unsure = "; too few grades to be sure" if facts.unsure else ""
    small = [] if facts.unsure else power_sentences(facts.judged)  # else `next` says how many would do
    return Verdict(
        headline=f"{head}: {shares_sentence(shares, *told)}{unsure}." if shares else f"{head}{unsure}.",
        advice=said,
        lines=[said, *filter(None, [facts.worse(), facts.spared(), facts.next()]), *facts.notes()],
        worse=facts.worse(),
        spared=facts.spared(),
        next=facts.next(),
        evidence=[*filter(None, [misled, facts.agreement()]), *small, *shared],
        tone=tone(facts.compared) if kept == TUNED else "",
        flattered=facts.flattered,
    )


def _facts(kept: str, results: Sequence[Result], details: Mapping[str, Any]) -> _Facts:
    judged = judged_results(results)
    places = {_of(result) for result in judged}
    return _Facts(
        kept=kept,
        judged=judged,
        compared=[result for result in judged if result.difference],
        leaks=[leak for found in details.get("leaks", ()) if _place(leak := Leak(**found)) in places],
        choice=details.get("choice", {}),
        by_parts="folds" in details,
        same=kept == BACKBONE and details.get("same", False),
        weighed=from_details(guards := details.get("guards", {})),
        most=guards.get("most", 0.0),
        share=details.get("merge", {}).get("share", 0.0),
        chosen_on=chosen_on(results),
        by_words={
            (*_of(result), result.metric): result
            for result in results
            if result.model == WORD_OVERLAP and result.main
        },
    )


def _of(result: Result) -> tuple[str, str]:
    return result.role, result.pairs


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
    same: bool
    weighed: Weighed
    most: float
    share: float
    chosen_on: str = "pairs"
    by_words: Mapping[tuple[str, str, str], Result] = field(default_factory=dict)

    @property
    def losses(self) -> list[Loss]:
        """What the tuned weights lose on every guard."""
        return self.weighed.losses

    @property
    def better(self) -> bool:
        """Whether the tuned weights are shown to be better, and no guard refuses them: the rule."""
        if self.choice.get("refused"):
            return False
        if self.tested:
            return tone(self.compared) == "good" and not self.learned and not self.by_chance
        return bool(self.choice["chosen"]) and self.choice["confidence"] >= SURE

    @property
    def by_chance(self) -> list[Result]:
        """Where tuned weights are surely better on other pairs, if all are ranked no better than chance."""
        found = [result for result in self.compared if result.gain.verdict == "better" and self.tested]
        return found if all(result.score.value <= 0 for result in found) else []

    @property
    def learned(self) -> bool:
        """Whether the tuned weights learned from the pairs of the verdict."""
        return bool(self.too_many)

    @property
    def too_many(self) -> list[Leak]:
        """Where too many of the pairs of the verdict were seen in training, or chose."""
        return [leak for leak in self.leaks if leak.pairs > _MAX_LEAKED_FRACTION * leak.count]

    @property
    def tested(self) -> bool:
        """Whether other pairs judge than those that chose."""
        return not all(result.role == "dev" for result in self.judged)

    @property
    def unsure(self) -> bool:
        """Whether the tuned weights look better, and only the number of test pairs leaves it open."""
        loses = "worse" in {result.gain.verdict for result in self.compared}
        stays = self.kept == BACKBONE and self.tested and not self.learned and not self.choice.get("refused")
        lost = self.diluted or self.spoiled  # more grades would not bring it back
        return stays and not lost and not loses and bool(promising(self.compared))

    @property
    def diluted(self) -> bool:
        """Whether the backbone stays, and guards had taken more than half of the gain."""
        found = self.weighed.where_chosen
        return self.kept == BACKBONE and not self.learned and found is not None and bool(found.left)

    @property
    def spoiled(self) -> bool:
        """Whether the backbone stays, and training made it much worse before guards mixed the backbone in."""
        found = self.weighed.where_chosen
        return self.kept == BACKBONE and found is not None and found.spoiled

    @property
    def harmed(self) -> bool:
        """Whether tuned weights are surely worse on a guard or what judges, and nowhere better; or chance."""
        if self.same:
            return False
        found = {result.gain.verdict for result in self.compared}
        guarded = self.choice.get("refused") or any(loss.too_much(self.most) for loss in self.losses)
        guarded = guarded or self.spoiled
        by_chance = self.by_chance or (self._untaught and self.choice["best"] <= 0)
        return bool(guarded or by_chance) or ("worse" in found and "better" not in found)

    @property
    def _untaught(self) -> bool:
        """Whether only the pairs that choose judge, and by them no candidate was above chance or backbone."""
        choice = self.choice
        if self.tested or choice["confidence"] is None:
            return False
        return bool(choice["best"] <= max(choice["simplest"], 0.0))

    @property
    def choosers(self) -> str:
        """What chose the weights, in words."""
        if self.by_parts:
            return "pairs held out in turn"
        return f"dev {self.chosen_on}" + beside_sentence(self.choice.get("judged", 0))

    @property
    def judges(self) -> str:
        """What judges, in words."""
        return f"test {measured_items(self.judged)}" if self.tested else self.choosers

    @property
    def flattered(self) -> str:
        """Why the pairs that judge show no gain whatever they say; empty where they may."""
        return f"The {self.judges} hold too many training or dev pairs to show a gain" if self.learned else ""

    def head(self) -> str:
        """Return the headline without figures."""
        found = {result.gain.verdict for result in self.compared} if self.tested else set()
        if self.kept == TUNED:
            return "Better" if self.tested else "Seemingly better"
        if self.same:
            return "The same model, for training changed nothing"
        if self.choice.get("refused"):
            return "It costs too much elsewhere, so the backbone stays"
        if {"better", "worse"} <= found:
            return "Better on some pairs, worse on others, so the backbone stays"
        return f"{'Worse' if 'worse' in found else 'Not shown to be better'}, so the backbone stays"

    def advice(self) -> str:
        """Return what to do, and why."""
        if self.kept == BACKBONE:
            return f"{self.why_kept()}. {IN_TUNED_HARMFUL if self.harmed else IN_TUNED}"
        if self.tested:
            return advice(self.compared, "the backbone")
        choice = self.choice
        figures = f"{100 * choice['best']:.1f}, backbone {100 * choice['simplest']:.1f}"
        return (
            f"Better on the {self.choosers}, which chose it ({figures}, confidence "
            f"{choice['confidence']:.2f}): measure it on test pairs before you rely on it."
        )

    def notes(self) -> list[str]:
        """Return the sentences behind the advice."""
        if self.kept == BACKBONE and not self.tested:
            return []
        words = filter(None, map(self._no_better_than_words, self.judged))
        lines = [*map(compared_line, self.compared), *words]
        if self.kept == TUNED and not self.tested:
            chose = "the number of steps" if self.by_parts else "the checkpoint"
            option = "--test-search" if self.chosen_on == "queries" else "--test pairs"
            lines.append(
                f"these {self.chosen_on} also chose {chose}, so the gain is flattered; give {option}"
            )
        return lines + [f"{leak.sentence()}, which flatters the model" for leak in self.leaks if leak.pairs]

    def _no_better_than_words(self, result: Result) -> str:
        """Return that counting shared words ranks a set no worse than weights that were taken, if so."""
        # A search may have the name of a file of pairs; its figure is another one.
        words = self.by_words.get((*_of(result), result.metric)) if self.kept == TUNED else None
        if words is None or words.score.value < result.score.value:
            return ""
        both = f"{100 * words.score.value:.1f} and {100 * result.score.value:.1f}"
        return f"{result.pairs}: counting shared words ranks it no worse than the tuned model does ({both})"

    def worse(self) -> str:
        """Return what the tuned weights lose elsewhere; nothing where the advice says it.

        That it is not known is said only of weights that were taken.
        """
        known = self.losses if self.kept == TUNED else [loss for loss in self.losses if loss.refuses]
        if not known or self.same or self.choice.get("refused"):
            return ""
        said = worse_sentence(known, self.most)
        whose = "What got worse" if self.kept == TUNED else "What got worse with the tuned weights"
        return said.replace("What got worse", whose, 1)

    def spared(self) -> str:
        """Return why the tuned weights have more of the backbone than planned; empty where they do not."""
        # Pairs that a language model graded chose, too, but have none of the figures that are told.
        chosen_by = f"dev {self.chosen_on}"
        return "" if self.same else spared_sentence(self.weighed, self.most, self.share, chosen_by)

    def next(self) -> str:
        """Return what to do next; nothing where the tuned model is to be used, or the advice says it."""
        if self.choice.get("refused"):
            return ""
        if said := self._of_guards():
            return said
        if self.same or self._untaught:
            return "Next: see whether anything was to be learned (epochs, learning_rate, the training pairs)"
        if not self.tested:
            return TEST_SEARCH if self.chosen_on == "queries" else grade_test_pairs()
        if self.kept == TUNED:
            return ""
        if self.learned:
            return self._other_pairs()
        if measured_items(self.judged) != "pairs":  # of searches nobody knows how many queries would do
            return ""
        if self.unsure:
            return grade_more(self.compared)
        if gaining(self.compared) and "worse" not in {result.gain.verdict for result in self.compared}:
            return TOO_SMALL
        return (
            "Next: read the losses in the report, which show what the training pairs taught; more grades are "
            "unlikely to turn this into a gain"
        )

    def _of_guards(self) -> str:
        """Return what to do where the backbone that guards mixed in took the gain, or hides a fall."""
        found = self.weighed.where_chosen
        if found is None:
            return ""
        if self.diluted:
            left = f"with {100 * self.share:.0f} % of the backbone {found.left} of the gain is left"
            return (
                f"Next: decide what may get worse, for {left}: --guard-loss allows more; fewer epochs or a "
                "lower learning_rate may cost less elsewhere"
            )
        if self.spoiled:
            fell = f"from {100 * found.backbone:.1f} to {100 * found.planned:.1f} on the dev {self.chosen_on}"
            return (
                f"Next: look at the training pairs, for with them the model fell {fell} before guards mixed "
                "the backbone in: are their scores turned round, or do they stand beside other texts?"
            )
        return ""

    def _other_pairs(self) -> str:
        if all(leak.origin == "dev" for leak in self.too_many):  # --drop-leaks drops training pairs alone
            return "Next: give test pairs that are not among the dev pairs, in either order of the two texts"
        return "Next: fit again with --drop-leaks, or with test pairs that share none with the training"

    def agreement(self) -> str:
        """Return how far the saved weights keep the backbone's order, where they are not its own."""
        return agreement_sentence(self.losses) if self.kept == TUNED else ""

    def why_kept(self) -> str:
        """Return why the backbone stayed, without a full stop."""
        if self.same:
            return "Tuned weights and backbone give every pair the same similarity, so the backbone stays"
        choice = self.choice
        pairs = "held-out pairs" if self.by_parts else self.choosers
        figures = f"{100 * choice['best']:.1f} at best, backbone {100 * choice['simplest']:.1f}"
        if choice.get("refused"):
            lost = [loss for loss in self.losses if loss.too_much(self.most)]
            tried = "" if self.by_parts else "; with any share of the backbone a guard still loses too much"
            more = "--merge-back mixes in more of the backbone; " if self.by_parts else ""
            said = costs_sentence(lost, self.most)
            return (
                f"{said[0].upper()}{said[1:]}{tried} (on the {pairs}: {figures}), so the backbone stays; "
                f"{more}--guard-loss allows more"
            )
        if self.tested and self.learned and tone(self.compared) == "good":
            return f"{self.flattered}, so the backbone stays"
        if self.by_chance:
            told = ", ".join(
                f"{result.pairs}: {100 * result.score.value:.1f}, backbone "
                f"{100 * (result.score.value - result.gain.delta):.1f}"
                for result in self.by_chance
            )
            return (
                f"Tuning did not help: the tuned weights rank the {self.judges} no better than chance would "
                f"({told}), so the backbone stays"
            )
        if self.tested:
            return f"{finding(self.compared, 'the backbone')}, so the backbone stays"
        if choice["confidence"] is None:
            unknown = f"the {pairs} {too_few_to_choose(pairs)}"
            return f"Whether tuning helped is not known: {unknown}. The backbone stays"
        if choice["best"] <= 0:  # however bad the backbone is
            return (
                f"Tuning did not help: the tuned weights rank the {pairs} no better than chance would "
                f"({figures}), so the backbone stays"
            )
        ranked = "rank" if self.chosen_on == "pairs" else "answer"
        several = choice["compared"] > 1
        none = (
            f"of {choice['compared']} compared, none {ranked}ed"
            if several
            else f"the tuned weights did not {ranked}"
        )
        return (
            f"Tuning did not surely help: {none} the {pairs} better than the backbone by more than chance "
            f"explains (confidence {choice['confidence']:.2f}; {figures}), so the backbone stays"
        )
