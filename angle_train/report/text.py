"""Results as plain text: the table, verdicts, advice, and the command that repeats a run.

Correlations are multiplied by 100 here and on the page, and nowhere before.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from angle_data.calling.defaults import command_words
from angle_data.console import duration
from angle_data.text import counted
from angle_train.data.judged import FEWEST_JUDGED
from angle_train.evaluation.compare import SPEARMAN, WORD_OVERLAP, Result
from angle_train.evaluation.judged import DISAGREES, FEW, UNLIKE
from angle_train.evaluation.search import NDCG
from angle_train.evaluation.statistics import Difference


@dataclass(frozen=True, slots=True)
class Table:
    """A table: names of the columns, texts of the rows, and which columns hold numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int]


def table_of(results: Sequence[Result], *, roles: bool = False) -> Table:
    """Return a row for every result, set by set; if all are Spearman correlations, no column says so.

    A set that does not have its published size is marked with `*`. With `roles` there is a column for the
    role of each set; without, sets that share a name have their role behind the name.
    """
    alone = all(result.metric == SPEARMAN for result in results)
    sets = {(result.pairs, result.role) for result in results}
    twice = {pairs for pairs, count in Counter(pairs for pairs, _ in sets).items() if count > 1}
    columns = ["pairs" if alone else "task", *(["role"] if roles else []), "n"]
    columns += ["model", "Spearman"] if alone else ["figure", "model", "x 100"]
    rows = []
    for result in results:
        name = result.pairs + ("*" if result.standard_size is False else "")
        difference = result.difference
        rows.append(
            [
                name + (f" ({result.role})" if result.pairs in twice and not roles else ""),
                *([result.role] if roles else []),
                _count(result),
                *([] if alone else [result.metric]),
                result.model,
                f"{100 * result.score.value:.1f}",
                f"[{100 * result.score.low:.1f}, {100 * result.score.high:.1f}]",
                f"{100 * difference.delta:+.1f}" if difference else "",
                interval_text(difference) if difference else "",
                difference.verdict if difference else "",
            ]
        )
    first = len(columns) - 1
    numbers = [columns.index("n"), *range(first, first + 4)]
    return Table([*columns, "95 %", "difference", "95 %", "verdict"], rows, numbers)


def _count(result: Result) -> str:
    """Return how many items a result rests on, and in brackets how many more a language model graded."""
    judged = result.judged
    if judged is None or judged.unused:
        return str(result.count)
    return f"{result.count} (+{judged.judged - judged.both} judged)"


def interval_text(difference: Difference) -> str:
    """Return the interval of a difference, times 100 and with signs."""
    return f"[{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"


def notes_on(results: Sequence[Result]) -> list[str]:
    """Return sentences that the table needs: on sizes of sets, where one differs; on what an LLM judged."""
    notes = judged_sentences(results)
    if any(result.standard_size is False for result in results):
        notes.append("* not of the published size: not comparable with published figures.")
    return notes


def judged_sentences(results: Sequence[Result]) -> list[str]:
    """Return for each set that a language model judged what its grades are worth, in a sentence."""
    sets: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.judged and result.model != WORD_OVERLAP:
            sets.setdefault((result.role, result.pairs), []).append(result)
    compared = {place: [r for r in found if r.difference] or found for place, found in sets.items()}
    return [f"{pairs}: {_judged_sentence(found)}." for (_, pairs), found in compared.items()]


def _judged_sentence(results: Sequence[Result]) -> str:
    notes = [result.judged for result in results if result.judged]
    note, agreement = notes[0], f"Spearman {notes[0].agreement:.2f} on {counted(notes[0].both, 'pair')}"
    if note.unused == FEW:
        return (
            f"{note.grader} graded {note.both} of your {note.graded} pairs; with fewer than {FEWEST_JUDGED} "
            "its grades are not used"
        )
    if note.unused == DISAGREES:
        return f"{note.grader} adds nothing: its grades do not go with yours ({agreement})"
    if note.unused == UNLIKE:
        return (
            f"the grades of {note.grader} are not used: the pairs that you graded are no random sample of "
            "those that it graded; draw them with angle-data grade from its run"
        )
    like = sorted({round(found.counts_like) for found in notes})
    worth = " to ".join(f"{count:,}" for count in dict.fromkeys((like[0], like[-1])))
    missing = f" ({note.graded - note.both} of yours it did not grade)" if note.both < note.graded else ""
    said = (
        f"{note.graded:,} graded by you and {note.judged:,} by {note.grader}{missing} count like {worth} "
        f"graded by you ({agreement})"
    )
    alone = [result.judged.alone_difference for result in results if result.judged]
    if len(alone) == 1 and alone[0]:
        said += f"; yours alone show {100 * alone[0].delta:+.1f} {interval_text(alone[0])}"
    return said


def aligned(table: Table) -> list[str]:
    """Return the lines of a table whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if i in table.numbers else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [table.columns, ["-" * width for width in widths], *table.rows]
    ]


def results_table(results: Sequence[Result]) -> str:
    """Return an aligned table, one line per result, with notes on the numbers."""
    lines = aligned(table_of(results))
    baselines = sorted({result.baseline for result in results if result.baseline})
    paired = f"; differences to {', '.join(baselines)}, paired" if baselines else ""
    alone = all(result.metric == SPEARMAN for result in results)
    what = f"{'Spearman x 100, ' if alone else ''}95 % bootstrap intervals over {measured_items(results)}"
    return "\n".join([*lines, f"{what}{paired}.", *notes_on(results)])


def compared_line(result: Result) -> str:
    """Return what the difference on one set says, such as `X: better, +3.1 [+1.0, +5.2]`."""
    found = result.gain
    name = f"{result.pairs}, {NDCG}" if result.metric == NDCG else result.pairs
    return f"{name}: {found.verdict}, {100 * found.delta:+.1f} {interval_text(found)}"


def advice(found: Sequence[Result], old: str, *, seen: bool = False) -> str:
    """Return the sentence that a report starts with: take the new model, or keep the old one.

    It rests on the paired intervals, and on whether the new model ranks anything better than chance.

    Args:
        found: The new model on at least one set, compared with the old one.
        old: What to call the old model, such as `the backbone`.
        seen: Whether the new model learned from the sets, or they chose its weights: then they cannot decide.
    """
    verdicts = {result.gain.verdict for result in found}
    if "better" not in verdicts:
        end = f"keep {old}"
    elif all(result.score.value <= 0 for result in found if result.gain.verdict == "better"):
        end = "but it ranks them no better than chance, so use neither"
    elif "worse" in verdicts:
        end = "use it only where it is better"
    else:
        end = "measure it on other pairs before you use it" if seen else "use it"
    return f"{finding(found, old)}: {end}."


def finding(found: Sequence[Result], old: str) -> str:
    """Return how the new model compares with the old one, without a full stop; arguments as of `advice`."""
    if len(found) == 1:
        return _finding_on_one(found[0], old)
    if all(result.gain.none_at_all for result in found):
        return f"The same model as {old}, or one that ranks everything alike in {len(found)} sets"
    verdicts = [result.gain.verdict for result in found]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    sets = f"{len(found)} sets"
    if not better:
        hurt = f", worse on {worse}" if worse else ""
        return f"Not reliably better than {old} on any of {sets}{hurt}"
    if worse:
        return f"Better than {old} on {better} of {sets}, worse on {worse}"
    rest = ", not reliably different on the others" if better < len(found) else ""
    return f"Better than {old} on {better} of {sets}{rest}"


def _finding_on_one(result: Result, old: str) -> str:
    difference = result.gain
    where = f"on {result.count:,} {measured_items([result])}"
    if difference.none_at_all:
        items = f"{result.count:,} {measured_items([result])}"
        return f"The same model as {old}, or one that ranks all {items} alike"
    delta, low, high = (100 * v for v in (difference.delta, difference.low, difference.high))
    if difference.verdict == "better":
        return f"Better than {old} by {delta:.1f} [{low:.1f}, {high:.1f}] {where}"
    if difference.verdict == "worse":
        return f"Worse than {old} by {-delta:.1f} [{-high:.1f}, {-low:.1f}] {where}"
    return f"Not reliably better than {old} ({delta:+.1f} {interval_text(difference)} {where})"


def measured_items(results: Sequence[Result]) -> str:
    """Return what results are of, and what their intervals are over: pairs, queries, or else items."""
    kinds = {SPEARMAN: "pairs", NDCG: "queries"}
    found = {kinds.get(result.metric, "items") for result in results if result.main}
    return found.pop() if len(found) == 1 else "items"


def tone(found: Sequence[Result]) -> str:
    """Return `good` if the new model is better somewhere and worse nowhere, `bad` if worse somewhere."""
    verdicts = {result.gain.verdict for result in found}
    return "bad" if "worse" in verdicts else "good" if "better" in verdicts else ""


def command_line(program: str, options: Mapping[str, Any], *, moved: bool = False) -> str:
    """Return a command in a shell's quoting, see `command_words`; `moved` makes paths `portable`."""

    def shown(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [portable(str(one)) for one in value]
        return portable(str(value)) if isinstance(value, str | Path) else value

    return command_words(program, {k: shown(v) for k, v in options.items()} if moved else options)


def portable(path: str) -> str:
    """Return a path or hub id without the place of the files on this machine.

    Relative paths and hub ids stay as they are. Of an absolute path the last part stays. Of `DIR/dataset`,
    which is what `angle-data` writes, the last two stay: `dataset` alone would say nothing.
    """
    given = Path(path)
    if not given.is_absolute():
        return path
    parts = given.parts
    return "/".join(parts[-2:] if parts[-1] == "dataset" else parts[-1:])


def short_name(model: str) -> str:
    """Return the last part of a hub id, or the name of a directory without its digest."""
    return model.split("@")[0].rstrip("/").rsplit("/", 1)[-1]


def made_line(seconds: float | None = None, usd: float = 0.0) -> str:
    """Return when and with what a page was made, how long that took, and what the labels cost, if known.

    SOURCE_DATE_EPOCH, as builds that are to be repeated set it, replaces the day. The page of a run has no
    time, so that the same run has the same page on the same day.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    day = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    parts = [f"Made on {day.day} {day:%B %Y}", f"angle-toolkit {version('angle-toolkit')}"]
    if seconds is not None:
        parts.append(f"computing took {duration(seconds)}")
    if usd:
        parts.append(f"the labels cost {usd:,.2f} USD")
    return ", ".join(parts) + "."
