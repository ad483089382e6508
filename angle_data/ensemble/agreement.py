"""How far annotators and graders agree: the tables of `report.json`. Decides nothing.

A grader's verdict on a pair is the polarity that its grade speaks for, on its own scale (`graders.Shape`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from angle_data.ensemble.beliefs import Beliefs
from angle_data.ensemble.graders import area_under_curve
from angle_data.ensemble.network import Item
from angle_data.records import Polarity


def annotator_matrix(items: Iterable[Item]) -> dict[str, dict[str, dict[str, int]]]:
    """Return for every two annotators how many pairs both offered: with the same polarity, contradicting.

    An annotator that offered one pair with both polarities counts as contradicting itself and others.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    names: set[str] = set()
    for item in items:
        names.update(claim.annotator for claim in item.claims)
        seen: dict[tuple[str, str], bool] = {}
        for one, other in combinations(item.claims, 2):
            if one.annotator == other.annotator and one.polarity == other.polarity:
                continue
            pair = (one.annotator, other.annotator)
            seen[pair] = seen.get(pair, True) and one.polarity == other.polarity
        for (one_name, other_name), same in seen.items():
            counts[one_name, other_name, "same" if same else "contradicting"] += 1
    ordered = sorted(names)
    return {
        one: {
            other: {
                kind: counts[min(one, other), max(one, other), kind] for kind in ("same", "contradicting")
            }
            for other in ordered
        }
        for one in ordered
    }


def grader_table(items: Sequence[Item], beliefs: Beliefs) -> dict[str, dict[str, Any]]:
    """Return what each grader's grades look like and how often it accepts each annotator's candidates.

    `auc` is how often it grades a pair offered as synonym above one offered as antonym; `accepts` counts, by
    annotator, its verdicts that agree with the polarity asked for.
    """
    grades: dict[str, dict[Polarity, list[float]]] = {}
    accepts: dict[str, dict[str, dict[str, int]]] = {}
    for item in items:
        for grader in item.grades:
            sees = _verdict(item, grader, beliefs)
            for annotator, polarity in sorted({(c.annotator, c.polarity) for c in item.claims}):
                sides = grades.setdefault(grader, {"synonym": [], "antonym": []})
                sides[polarity].append(item.grades[grader])
                row = accepts.setdefault(grader, {}).setdefault(annotator, {"graded": 0, "accepted": 0})
                row["graded"] += 1
                row["accepted"] += sees == polarity
    table = {}
    for grader, sides in sorted(grades.items()):
        auc = area_under_curve(sides["synonym"], sides["antonym"])
        table[grader] = {
            "auc": None if auc is None else round(auc, 4),
            "mean_synonym": _mean(sides["synonym"]),
            "mean_antonym": _mean(sides["antonym"]),
            "accepts": {
                annotator: row | {"rate": round(row["accepted"] / row["graded"], 4)}
                for annotator, row in sorted(accepts[grader].items())
            },
        }
    return table


def verdict_matrix(items: Iterable[Item], beliefs: Beliefs) -> dict[str, dict[str, dict[str, Any]]]:
    """Return for every two graders how many pairs both graded, and Cohen's kappa of their verdicts."""
    table: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for item in items:
        sees = {grader: _verdict(item, grader, beliefs) for grader in sorted(item.grades)}
        for one, other in combinations(sees, 2):
            table.setdefault((one, other), Counter())[str(sees[one]), str(sees[other])] += 1
    matrix: dict[str, dict[str, dict[str, Any]]] = {}
    for (one, other), counts in sorted(table.items()):
        kappa = cohen_kappa(counts)
        cell = {"pairs": counts.total(), "kappa": None if kappa is None else round(kappa, 4)}
        matrix.setdefault(one, {})[other] = cell
        matrix.setdefault(other, {})[one] = cell
    return matrix


def cohen_kappa(counts: Mapping[tuple[str, str], int]) -> float | None:
    """Return Cohen's kappa of two raters from the counts of their answers; None if chance explains all.

    Cohen 1960, doi:10.1177/001316446002000104.
    """
    total = sum(counts.values())
    if not total:
        return None
    one: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for (first, second), count in counts.items():
        one[first] += count
        other[second] += count
    agreed = sum(count for (first, second), count in counts.items() if first == second) / total
    chance = sum(one[answer] * other[answer] for answer in one) / total**2
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def krippendorff_alpha(units: Iterable[Sequence[float]]) -> float | None:
    """Return Krippendorff's alpha with the interval metric; None where it is undefined.

    Each unit holds the grades of one pair; units with fewer than two count for nothing. 1 is perfect
    agreement, 0 what chance gives. Krippendorff 2011, https://repository.upenn.edu/asc_papers/43.
    """
    count, total, squares, observed = 0, 0.0, 0.0, 0.0
    for unit in units:
        size = len(unit)
        if size < 2:
            continue
        unit_sum, unit_squares = sum(unit), sum(grade * grade for grade in unit)
        observed += 2 * (size * unit_squares - unit_sum**2) / (size - 1)
        count, total, squares = count + size, total + unit_sum, squares + unit_squares
    if count < 2:
        return None
    expected = 2 * (count * squares - total**2) / (count - 1)
    return None if expected <= 0 else 1 - observed / expected


def _verdict(item: Item, grader: str, beliefs: Beliefs) -> Polarity | None:
    """Return the polarity a grade speaks for; None if it speaks for neither."""
    odds = beliefs.shapes[grader].log_odds(beliefs.scores[grader][item.grades[grader]])
    return None if odds == 0 else "synonym" if odds > 0 else "antonym"


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None
