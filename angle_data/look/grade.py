"""Pairs for people to grade: dev and test pairs of their own.

They are spread over the range of scores, and no text is in two pairs, so none is in dev and in test. Pairs
that a language model graded are drawn at random instead: only a random sample says how its grades err on all
of them, which `angle-train`'s `--judged` corrects.
"""

from __future__ import annotations

import csv
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, islice
from pathlib import Path
from typing import Any

from angle_data.errors import InputError
from angle_data.jsonl import replace_file
from angle_data.look.config import GradeConfig
from angle_data.look.read import ShownItem, Stratum, count, find, items_of, spread
from angle_data.look.show import check_ending, write_page
from angle_data.records import GRADE_SCALE, MEANINGS, OPPOSITES, PURPOSES, SCALE
from angle_data.tables import guarded, read_table, unguarded
from angle_data.text import content_id, counted, pair_key, stable_hash

log = logging.getLogger("angle.grade")

SHEET_SPLITS = ("dev", "test")
SHEET_COLUMNS = ("sentence1", "sentence2", "score")
_JUDGED = "judged"  # the column with the run that judged pairs were drawn from, as the sheet's folder sees it

_ALIKE = "How alike is the meaning of these two texts?"
# Of a query and a passage, as prompts/score/answers.txt has it: question, meanings of 0 to 5, hint.
_ANSWERS = (
    "The first text is a search query, the second a passage. Does the passage answer the query?",
    (
        "nothing in common",
        "only the topic in common",
        "it is about what the query asks, and does not answer it",
        "it answers a part of the query, or only with what one has to know besides",
        "it answers the query, but for a detail",
        "it answers the query in full, by itself",
    ),
    "A wrong version, place, name or negation makes it a 2 at most.",
)
_SPARE = 20  # candidates kept in memory for each pair wanted, as texts may be taken
_SCORE = re.compile(r"[0-4](\.\d*)?|5(\.0*)?")
Drawn = tuple[tuple[str, str, str], ...]  # two texts each, and the file that they go to
Graded = dict[str, list[tuple[str, ...]]]  # by split: two texts each, and their grade


def draw_pairs(
    data: Path, *, n: int, seed: int = 0, dev_share: float = 0.5, graded: Sequence[Path] = ()
) -> tuple[Drawn, dict[str, int]]:
    """Draw `n` pairs and deal them to dev and test.

    Of a run of llm-score they are a random sample. Of anything else they come in equal shares from each fifth
    of the range of scores, and within a fifth polarities, degrees or kinds alternate. The pairs come in an
    order that tells nothing, and with how many each fifth gave. Those in files of `graded` pairs are not
    drawn again: together with them, a random sample of the same seed stays one.
    """
    GradeConfig(n=n, dev_share=dev_share)  # it knows their ranges, also for callers without a config
    _, files = find(data)
    counts = count(files)
    known = {key for path in graded for key in _keys_of(path)}

    def rank(item: ShownItem) -> int:
        return stable_hash("\n".join((f"{seed} grade", *text_key(item))))

    def stratum(item: ShownItem) -> tuple[int, str]:
        return counts.band(item), item.group

    kept = (item for item in items_of(files) if item.kind != "rejected")
    pairs = (item for item in kept if all(text_key(item)) and text_key(item) not in known)
    if is_judged(data):
        chosen = nsmallest(n, {text_key(item): item for item in pairs}.values(), key=rank)
        if not chosen and not known:
            raise InputError(f"{data} holds no grades; see rejected.jsonl in it for the reasons")
    else:
        chosen = _spread_out(pairs, stratum, rank, n)
        chosen.sort(key=lambda item: (stratum(item), rank(item)))
    dealt = [SHEET_SPLITS[int((i + 1) * dev_share) == int(i * dev_share)] for i in range(len(chosen))]
    if missing := set(SHEET_SPLITS) - set(dealt):
        few = f"{data}: {counted(len(chosen), 'pair')} with texts of their own"
        raise InputError(f"{few} leave none for {max(missing)}; provide more pairs, or change --dev-share")
    scores = Counter(counts.band_name(item) for item in chosen)
    rows = sorted(zip(chosen, dealt, strict=True), key=lambda row: stable_hash(f"{seed} {rank(row[0])}"))
    return tuple((item.text1.strip(), item.text2.strip(), split) for item, split in rows), dict(scores)


def is_judged(data: Path) -> bool:
    """Return whether pairs are those that a language model graded: a run of llm-score."""
    return (data / "scores.jsonl").is_file()


def judged_in(sheet: Path) -> Path | None:
    """Return the run that a language model graded and the pairs of a sheet were drawn from.

    None where the sheet names none, or the run is not there, which a warning says.
    """
    _, row = next(iter(read_table(sheet)), ("", {}))
    named = unguarded(row.get(_JUDGED) or "")
    if not named:
        return None
    run = Path(os.path.normpath(sheet.parent / named))  # from wherever the command is given
    if is_judged(run):
        return run
    log.warning(
        "warning: %s: the run that graded its pairs, %s, is not there; give it to `angle-train` "
        "with --judged",
        sheet,
        run,
    )
    return None


def _keys_of(path: Path) -> set[tuple[str, str]]:
    """Return the keys of the pairs of a file that people graded."""
    return {text_key(item) for item in items_of([path]) if item.kind != "rejected"}


def _spread_out(
    pairs: Iterable[ShownItem],
    stratum: Callable[[ShownItem], Stratum],
    rank: Callable[[ShownItem], int],
    n: int,
) -> list[ShownItem]:
    """Return `n` pairs spread over the strata, as far as no text is in two of them."""
    used: set[str] = set()
    chosen: list[ShownItem] = []
    different = (item for item in pairs if len({*text_key(item)}) == 2)
    free = spread(different, stratum, rank, _SPARE * n, lambda item: used.isdisjoint(text_key(item)))
    for item in islice(free, n):
        used.update(text_key(item))
        chosen.append(item)
    return chosen


def write_grading(
    out: Path,
    pairs: Drawn,
    *,
    purpose: str | None = None,
    verdict: bool = False,
    judged: Path | None = None,
) -> Path:
    """Write the pairs as a CSV to fill in to `out`, and as a page beside it, whose path is returned.

    `purpose` is what the pairs are for: the page says which grade opposites get then. With `verdict` they are
    to be called duplicates or not (see `angle_data.look.verdict`), not graded. `judged` is as for
    `write_pairs`.
    """
    page = out.with_suffix(".html")
    check_ending("--out", out, ".csv")
    if there := next((path for path in (out, page) if path.exists()), None):
        work = "verdicts" if verdict else "grades"
        raise InputError(f"{there} exists and may hold {work}; move it away, or give another --out")
    found = {"title": out.stem, "key": content_id(str(pairs)), "verdict": verdict, "pairs": pairs}
    write_page(page, "grade", found | page_words(purpose))
    write_pairs(out, pairs, verdict=verdict, judged=judged)
    return page


def write_pairs(out: Path, pairs: Drawn, *, verdict: bool = False, judged: Path | None = None) -> None:
    """Write the pairs as a CSV to fill in; a file that is there is replaced.

    It keeps the run that `judged` them, if any: only the sheet is at hand when it is filled.
    """
    check_ending("--out", out, ".csv")
    head = ("sentence1", "sentence2", "verdict") if verdict else (*SHEET_COLUMNS, "split")
    rows = [(guarded(one), guarded(other), "", split)[: len(head)] for one, other, split in pairs]
    if judged is not None:
        beside = guarded(os.path.relpath(judged, out.parent))
        head, rows = (*head, _JUDGED), [(*row, beside) for row in rows]
    write_sheet(out, [head, *rows])


def page_words(purpose: str | None) -> dict[str, Any]:
    """Return what the page says for a purpose: question, meaning of each grade, a hint, and their scale."""
    words = _ANSWERS if purpose == "search" else (_ALIKE, MEANINGS, OPPOSITES[purpose])
    return dict(zip(("question", "meanings", "hint"), words, strict=True)) | {"scale": GRADE_SCALE}


def purpose_of(data: Path) -> str | None:
    """Return what the pairs of a data set are for, as `ensemble --purpose` wrote it into every row."""
    rows = chain.from_iterable(map(read_table, find(data)[1]))
    _, row = next(rows, ("", {}))
    purpose = row.get("purpose")
    return purpose if purpose in PURPOSES else None


def write_sheet(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV that spreadsheets open; the first row names the columns."""
    _write(path, rows, mark="\ufeff")  # else Excel does not take it for UTF-8


def finish_grading(sheet: Path, *, replace: bool = False) -> dict[str, int]:
    """Write the graded pairs of a filled `sheet` beside it, a file for each split; return their counts.

    Pairs without a score are left out. No file that holds other grades is replaced, unless `replace` says so.
    """
    return write_graded(sheet, graded_pairs(sheet), replace=replace)


def write_graded(sheet: Path, graded: Graded, *, replace: bool = False) -> dict[str, int]:
    """Write graded pairs beside the file that they come from, see `finish_grading`."""
    if empty := [split for split, rows in graded.items() if not rows]:
        raise InputError(f"{sheet}: no pair of {' and '.join(empty)} has a score; grade some of dev and test")
    if not replace:
        check_derived(sheet, graded)
    written = {split_file(sheet, split): rows for split, rows in graded.items()}
    for path, rows in written.items():
        _write(path, [(*SHEET_COLUMNS, SCALE), *((*row, GRADE_SCALE) for row in rows)])
    return {str(path): len(rows) for path, rows in written.items()}


def graded_pairs(sheet: Path) -> Graded:
    """Return the pairs of a sheet that have a score (both texts and it), by split."""
    check_ending("--finish", sheet, ".csv")
    graded: Graded = {split: [] for split in SHEET_SPLITS}
    for place, row in read_table(sheet, require=(*SHEET_COLUMNS, "split")):
        if not (score := row["score"].strip().replace(",", ".")):
            continue
        if not _SCORE.fullmatch(score):
            raise InputError(f"{place}: score must be a number from 0 to 5, got {row['score']!r}")
        if row["split"] not in graded:
            raise InputError(f"{place}: split must be {' or '.join(SHEET_SPLITS)}, got {row['split']!r}")
        texts = (unguarded(row[name]) for name in SHEET_COLUMNS[:2])
        graded[row["split"]].append((*texts, f"{float(score):g}"))
    return graded


def check_derived(sheet: Path, graded: Mapping[str, Sequence[tuple[str, ...]]]) -> None:
    """Raise an `InputError` if a file that a sheet would give holds other grades than the sheet."""
    for path, rows in ((split_file(sheet, split), rows) for split, rows in graded.items()):
        if path.exists() and any(
            tuple(row.get(name, "") for name in SHEET_COLUMNS) not in rows for _, row in read_table(path)
        ):
            raise InputError(f"{path} holds grades that {sheet} does not have; move it away first")


def split_file(sheet: Path, split: str) -> Path:
    """Return where the graded pairs of a split of a sheet are written."""
    return sheet.with_name(f"{sheet.stem}-{split}.csv")


def text_key(item: ShownItem) -> tuple[str, str]:
    """Return what two items of the same two texts share."""
    return pair_key(item.text1, item.text2)


def _write(path: Path, rows: Iterable[Sequence[str]], mark: str = "") -> None:
    with replace_file(path) as stream:
        stream.write(mark)
        # The module puts no quotes around a lone carriage return, at which readers end a row.
        plain = ([cell.replace("\r\n", "\n").replace("\r", "\n") for cell in row] for row in rows)
        csv.writer(stream, lineterminator="\n").writerows(plain)
