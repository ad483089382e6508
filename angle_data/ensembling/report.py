"""What a build says about itself: the counts on the terminal, `report.json` and the data set's card.

No path, time or host is recorded, so that the same inputs give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from angle_data.ensembling.evidence import LEAST_AUC, LEAST_GRADES, Evidence, shown_areas
from angle_data.ensembling.given import GivenPairs
from angle_data.ensembling.read import GradeSet, Run
from angle_data.ensembling.screen import REASONS
from angle_data.ensembling.strategies import Outcome
from angle_data.publish.card import Card
from angle_data.records import LabelledPair, Rejection


@dataclass(frozen=True, slots=True)
class EnsembleSummary:
    """The counts of one build: `candidates` = `kept` + the sum of `dropped` (by reason code).

    `flipped` and `near_copies` count kept pairs with that flag, `pairs` the rows by split and polarity, or
    supervision; `dataset` is the folder written. `annotators` has these counts for each, and in `supports`
    the pairs of the data set that it offered, alone or with others. `given` counts the pairs of --pairs,
    `kept` and dropped by reason; `graded` has the `graders` that are used, and how many of the
    `candidate_pairs` they graded. Both are empty without any.
    """

    candidates: int
    kept: int
    flipped: int
    near_copies: int
    dropped: dict[str, int]
    pairs: dict[str, dict[str, int]]
    annotators: dict[str, dict[str, Any]]
    dataset: Path
    given: dict[str, int]
    graded: dict[str, Any]


def summarise(
    runs: Sequence[Run],
    outcome: Outcome,
    others: GivenPairs,
    splits: Mapping[str, Sequence[LabelledPair]],
    dataset: Path,
    evidence: Evidence,
) -> EnsembleSummary:
    """Return the counts of a build."""
    pairs = len(evidence.pairs)
    graded = {"graders": evidence.used, "candidate_pairs": pairs, "graded_pairs": evidence.graded}
    offered = Counter(candidate.model for run in runs for candidate in run.candidates)
    kept = Counter(choice.candidate.model for choice in outcome.kept)
    supports = Counter(model for choice in outcome.kept for model in choice.models)
    dropped = Counter((rejection.model, rejection.reason) for rejection in outcome.dropped)
    return EnsembleSummary(
        candidates=offered.total(),
        kept=len(outcome.kept),
        flipped=sum("flipped" in choice.flags for choice in outcome.kept),
        near_copies=sum("near_copy" in choice.flags for choice in outcome.kept),
        dropped=_sorted(Counter(rejection.reason for rejection in outcome.dropped)),
        pairs={
            name: _sorted(Counter(pair.polarity or pair.supervision for pair in pairs))
            for name, pairs in splits.items()
        },
        annotators={
            model: {
                "candidates": count,
                "kept": kept[model],
                "supports": supports[model],
                "dropped": _sorted(Counter({reason: n for (m, reason), n in dropped.items() if m == model})),
            }
            for model, count in sorted(offered.items())
        },
        dataset=dataset,
        given=others.counts,
        graded=graded if evidence.used and pairs else {},
    )


def rejected_rows(dropped: Iterable[Rejection]) -> Iterator[dict[str, Any]]:
    """Yield the rows of rejected.jsonl, in an order that does not depend on that of `dropped`."""

    def place(r: Rejection) -> tuple[str | int, ...]:
        return r.source_id, r.source, r.polarity or "", r.degree or 0, r.model, r.key, r.text

    return (r.to_dict() for r in sorted(dropped, key=place))


def grade_notes(evidence: Evidence, labelled: Mapping[str, int]) -> list[str]:
    """Return what to know about the grades, a line each, for the terminal and the card.

    With labels that rest on grades `labelled` counts the kept pairs whose score rests on their own
    (`graded`) and on those of others (`expected`); else it is empty.
    """
    known = evidence.verdicts.items()
    lines = [f"{name} {verdict.reason}: its grades are not used" for name, verdict in known if verdict.reason]
    lines += [
        f"{grader} graded given pairs and fewer than {LEAST_GRADES} candidates of either polarity: "
        "its grades are believed, and nothing shows how good they are"
        for grader, verdict in known
        if verdict.trusted
    ]
    odd: dict[str, dict[str, float]] = {}
    for grader in evidence.used:
        for annotator, area in evidence.verdicts[grader].annotators.items():
            if area < LEAST_AUC:
                odd.setdefault(annotator, {})[grader] = area
    lines += [
        f"{annotator}: its polarities disagree with the grades (area under the curve: {shown_areas(areas)}). "
        "Read some of its candidates: replies may be swapped"
        for annotator, areas in sorted(odd.items())
    ]
    if expected := labelled.get("expected"):
        kept = sum(labelled.values())
        rest = f"{expected} of the {kept} pairs kept have the score expected of such pairs"
        lines.append(f"{evidence.share}; {rest}")
    elif 0 < evidence.graded < len(evidence.pairs):
        lines.append(evidence.share)
    return lines


def grade_report(evidence: Evidence, read: GradeSet, labelled: Mapping[str, int]) -> dict[str, Any]:
    """Return what `report.json` says about graders and the grades that were read; nothing without grades."""
    if not read.grades:
        return {}
    graders = {
        grader: {
            "auc": None if verdict.auc is None else round(verdict.auc, 4),
            "auc_by_annotator": {name: round(area, 4) for name, area in verdict.annotators.items()},
            "used": verdict.reason is None,
        }
        for grader, verdict in evidence.verdicts.items()
    }
    scores = {
        "rows": read.rows,
        "pairs": len(read.grades),
        "unknown_pairs": read.unknown,
        "candidate_pairs": len(evidence.pairs),
        "graded_pairs": evidence.graded,
        **({"labelled": dict(labelled)} if labelled else {}),
        **read.facts,
    }
    return {"graders": graders, "scores": scores}


def make_report(
    runs: Sequence[Run],
    settings: Mapping[str, str | int | float],
    summary: EnsembleSummary,
    details: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the content of `report.json`; `details` are the strategy's and those of the grades."""
    counts = asdict(summary)
    del counts["dataset"], counts["graded"]  # the details say more
    return {
        "settings": dict(settings),
        **counts,
        "reasons": {name: REASONS[name] for name in (*summary.dropped, *summary.given) if name in REASONS},
        **details,
        "runs": [{"annotator": run.model, "candidates": len(run.candidates), **run.facts} for run in runs],
    }


def make_card(
    runs: Sequence[Run],
    settings: Mapping[str, str | int | float],
    summary: EnsembleSummary,
    notes: Sequence[str] = (),
) -> Card:
    """Return what the data set's card says about its making; `notes` are lines on what the grades lack."""
    dropped = ", ".join(f"{reason} {count}" for reason, count in summary.dropped.items()) or "none"
    given = " + ".join(f"{number} {name}" for name, number in summary.given.items())
    kinds = {kind for counts in summary.pairs.values() for kind in counts}
    wrote = {"antonym": "synonymous and opposite sentences", "degrees": "sentences at degrees of similarity"}
    written = " and ".join(text for kind, text in wrote.items() if kind in kinds) or wrote["antonym"]
    wrong = "A reply of the wrong polarity is found only where another annotator contradicts it literally."
    if settings["strategy"] == "principled" and settings["graders"] != "none":
        wrong = (
            "Replies of the wrong polarity were looked for with grades; some stay, and some flips are wrong."
        )
    return Card(
        title="LLM-annotated sentence pairs",
        summary=(
            f"Sentence pairs for training sentence embeddings. Large language models wrote {written} for "
            "each source text; an ensemble of them was labelled automatically."
        ),
        making=(
            *map(_made_by, runs),
            *notes,
            f"{summary.candidates} candidates = {summary.kept} kept + {summary.candidates - summary.kept} "
            f"dropped ({dropped}); {summary.flipped} kept with the polarity flipped",
            *([f"{sum(summary.given.values())} given pairs = {given}"] if given else []),
            "angle-data ensemble: " + ", ".join(f"{name} {value}" for name, value in settings.items()),
        ),
        limits=(
            "No human has checked the pairs. Synonyms may differ in detail and antonyms may not contradict.",
            wrong,
            "Antonyms flagged `near_copy` differ from their source by a negation or at most two words.",
            "Texts are as private, and as licensed, as the source texts and the models' terms make them.",
        ),
    )


def _made_by(run: Run) -> str:
    """Return a line on a run: who wrote, from which prompts, and how much."""
    checkpoint = f" ({run.facts['checkpoint']})" if "checkpoint" in run.facts else ""
    prompts = run.facts.get("prompts")
    asked = f", prompts {prompts['name']}" if isinstance(prompts, dict) and "name" in prompts else ""
    unfinished = ", unfinished" if "finished" in run.facts else ""
    return f"{run.model}{checkpoint}{asked}: {len(run.candidates)} candidates{unfinished}"


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
