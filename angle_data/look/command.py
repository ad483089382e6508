"""The commands `angle-data show` and `angle-data grade`: options in, one call, what to look at out."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from angle_data.calling.defaults import PROJECT_FILE
from angle_data.calling.options import with_options
from angle_data.errors import InputError
from angle_data.look.config import ON_A_PAGE, SHOWN, GradeConfig, ShowConfig

if TYPE_CHECKING:
    from angle_data.look.grade import Drawn

_DRAW = "give DATASET and --out my.csv to draw pairs, or only --finish my.csv at the end"


@with_options(ShowConfig)
def show(config: ShowConfig) -> tuple[dict[str, Any], str]:
    """Inspect data before training: all counts, then a sample of what was kept, flipped and rejected.

    The sample alternates between kinds, reasons, and polarities or degrees. Each text is shown beside what
    was written for it, with the reply that a rejected part came from.

    Example: angle-data show runs/chatgpt --reason echo_source

    As a page: angle-data show pairs --html pairs.html
    """
    return run_show(config)


def run_show(config: ShowConfig) -> tuple[dict[str, Any], str]:
    """Return the counts and the sample, and both as text; write the page if one is asked for."""
    from angle_data.look.show import as_text, check_ending, look, write_page

    html = config.html
    if html is not None:
        check_ending("--html", html, ".html")
    wanted = config.n if config.n is not None else SHOWN if html is None else ON_A_PAGE
    found = look(config.data, n=wanted, reason=config.reason, annotator=config.annotator, seed=config.seed)
    if html is None:
        return found, as_text(found)
    write_page(html, "show", found)
    return found, f"{len(found['items']):,} of {found['matching']:,} in {html}"


@with_options(GradeConfig)
def grade(config: GradeConfig) -> tuple[Any, str]:
    """Draw pairs across the range of scores to grade from 0 to 5 yourself, as dev and test pairs for fit.

    You grade in the browser with the keyboard, on a page that this command serves to this machine alone.
    Every grade is saved in --out as you give it: stop at any time, and the same command goes on. Or take a
    CSV to a spreadsheet (--csv, then --finish). No text is in two pairs, and no machine's score is shown.
    From a run of llm-score the pairs are drawn at random, as angle-train's --judged needs them. With
    --verdict, a random sample of a data set with labels 0 and 1 is drawn instead, to find out how many labels
    are wrong.

    Example: angle-data grade pairs --n 150 --out my.csv

    In a spreadsheet: angle-data grade pairs --out my.csv --csv, then angle-data grade --finish my.csv

    Together in Argilla: angle-data grade pairs --out my.jsonl, then angle-data grade --finish my.json

    Check labels: angle-data grade gis --verdict --n 100 --out check.csv

    Two people: each grades a copy of the CSV, then angle-data grade --finish my.csv --second theirs.csv
    """
    return run_grade(config)


def run_grade(config: GradeConfig) -> tuple[Any, str]:
    """Take the way that the options ask for; return what came of it, as data and as text."""
    if (
        config.finish is not None and Path(PROJECT_FILE).is_file()
    ):  # whose data set and sheet are not meant then
        config = replace(config, out=None, data=config.data if config.verdict else None)
    data = config.data
    out = config.out
    if config.second is not None and (config.finish is None or config.verdict):
        raise InputError("--second goes with --finish my.csv, the grades of the first person")
    if config.verdict:
        return _verdicts(config)
    if config.finish is not None and data is None and out is None:
        return _finished(config.finish, config.second)
    if config.finish is not None:
        raise InputError(_DRAW)
    if out is not None and out.suffix.lower() == ".jsonl":
        return _records(config)
    return _sheet(config) if config.csv else serve_sheet(config)


def _finished(sheet: Path, second: Path | None) -> tuple[Any, str]:
    """Write the dev and test pairs of a filled sheet; say how far a second person's grades agree."""
    from angle_data.look.argilla import finish_records
    from angle_data.look.grade import finish_grading, judged_in

    exported = sheet.suffix.lower() == ".json"
    if exported and second is not None:
        raise InputError("--second goes with a CSV; an export of Argilla holds all people's grades already")
    agreement = None
    if second is not None:
        from angle_data.look.agreement import agreement_of

        agreement = agreement_of(sheet, second)
    written = finish_records(sheet) if exported else finish_grading(sheet)
    lines = [f"{count:,} pairs in {path}" for path, count in written.items()]
    lines.append(_next(*written, judged=None if exported else judged_in(sheet)))
    if agreement is None:
        return written, "\n".join(lines)
    return written | {"agreement": asdict(agreement)}, "\n".join([str(agreement), *lines])


def draw_sheet(config: GradeConfig) -> tuple[Any, str]:
    """Draw the pairs to grade into a new CSV; the same as `grade` does first, without grading."""
    from angle_data.look.grade import write_pairs

    data, out = _named(config)
    pairs, scores = _draw(config, data)
    write_pairs(out, pairs, judged=_judged(data))
    return {"pairs": len(pairs), "scores": scores, "sheet": out}, _drawn(config, len(pairs), scores)


def _named(config: GradeConfig) -> tuple[Path, Path]:
    """Return the data to draw pairs from and the file for them, which both must be given."""
    if config.data is None or config.out is None:
        raise InputError(_DRAW)
    return config.data, config.out


def _draw(config: GradeConfig, data: Path) -> tuple[Drawn, dict[str, int]]:
    """Draw the pairs to grade; return them, and how many each fifth of the range of scores gave."""
    from angle_data.look.grade import draw_pairs

    return draw_pairs(data, n=config.n, seed=config.seed, dev_share=config.dev_share, graded=config.graded)


def serve_sheet(config: GradeConfig) -> tuple[Any, str]:
    """Serve the page of a sheet, drawn now if it is not there; return what was graded."""
    from angle_data.console import log
    from angle_data.look.grade import judged_in, purpose_of
    from angle_data.look.serve import grade_in_browser

    data, out = config.data, config.out
    if out is None or (data is None and not out.exists()):
        raise InputError(_DRAW)
    if not out.exists():
        log.info("%s", draw_sheet(config)[1])
    purpose = purpose_of(data) if data is not None and data.exists() else None
    found = grade_in_browser(out, purpose, browser=not config.no_browser)
    lines = [f"graded  {found['graded']:,} of {found['pairs']:,} pairs of {out}"]
    if files := found["files"]:
        lines += [f"{count:,} pairs in {path}" for path, count in files.items()]
        lines.append(_next(*files, judged=_judged(data) or judged_in(out)))
    else:
        lines.append("then    the same command: grade some more, so that there are dev and test pairs")
    return found, "\n".join(lines)


def _sheet(config: GradeConfig) -> tuple[Any, str]:
    """Write a sheet to fill in, and a page that needs no server."""
    from angle_data.look.grade import purpose_of, split_file, write_grading

    data, out = _named(config)
    pairs, scores = _draw(config, data)
    page = write_grading(out, pairs, purpose=purpose_of(data), judged=_judged(data))
    dev, test = (str(split_file(out, split)) for split in ("dev", "test"))
    lines = [
        _drawn(config, len(pairs), scores),
        f"page    {page}  (open it, grade with the keys 0 to 5, download two files)",
        f"or      {out}  (fill the column score, then angle-data grade --finish {quote(str(out))})",
        _next(dev, test, judged=_judged(data)),
    ]
    return {"pairs": len(pairs), "scores": scores, "sheet": out, "page": page}, "\n".join(lines)


def _records(config: GradeConfig) -> tuple[Any, str]:
    """Write records to be graded in Argilla."""
    from angle_data.look.argilla import QUESTION, write_records

    data, out = _named(config)
    pairs, scores = _draw(config, data)
    write_records(out, pairs)
    lines = [
        _drawn(config, len(pairs), scores),
        f"next    log {out} in Argilla: fields sentence1 and sentence2, metadata split, a rating {QUESTION}",
        f"then    angle-data grade --finish {quote(str(out.with_suffix('.json')))}  (what Argilla exports)",
    ]
    return {"pairs": len(pairs), "scores": scores, "records": out}, "\n".join(lines)


def _drawn(config: GradeConfig, count: int, scores: dict[str, int]) -> str:
    """Return how many pairs were drawn, and why not as many as asked for."""
    judged = _judged(config.data) is not None
    why = "there are no more" if judged else "no text may be in two"
    short = "" if count == config.n else f", not {config.n:,}: {why}"
    lines = [
        f"pairs   {count:,}{short}{', drawn at random' * judged}",
        f"scores  {', '.join(f'{name}: {number}' for name, number in scores.items())}",
    ]
    return "\n".join(lines)


def _judged(data: Path | None) -> Path | None:
    """Return the data where a language model graded it, for --judged."""
    from angle_data.look.grade import is_judged

    return data if data is not None and is_judged(data) else None


def _verdicts(config: GradeConfig) -> tuple[Any, str]:
    """Draw labelled pairs to judge, or count the verdicts."""
    from angle_data.look.grade import write_grading
    from angle_data.look.verdict import FILE, draw_labelled, error_rates, rates_table

    data, out = config.data, config.out
    if data is not None and config.finish is not None and out is None:
        rates = error_rates(data, config.finish)
        return rates, rates_table(rates)
    if data is None or out is None or config.finish is not None:
        raise InputError(
            "give DATASET --verdict with --out my.csv to draw pairs, or --finish my.csv to count"
        )
    pairs = draw_labelled(data, n=config.n, seed=config.seed)
    page = write_grading(out, pairs, verdict=True)
    file = out.with_name(f"{out.stem}-{FILE}.csv")
    lines = [
        f"pairs   {len(pairs):,}",
        f"page    {page}  (open it, judge with the keys 1, 0 and u, download one file)",
        f"or      {out}  (fill the column verdict: duplicate, not or unsure)",
        f"then    angle-data grade {quote(str(data))} --verdict --finish {quote(str(file))}",
    ]
    return {"pairs": len(pairs), "sheet": out, "page": page}, "\n".join(lines)


def _next(dev: str, test: str, *, judged: Path | None = None) -> str:
    if Path(PROJECT_FILE).is_file():
        return "next    angle-train fit"
    sets = f"--dev {quote(dev)} --test {quote(test)}" + (f" --judged {quote(str(judged))}" if judged else "")
    return (
        f"then    angle-train fit --data DATA --backbone MODEL --out DIR {sets} --drop-leaks\n"
        "        (these pairs must not train: --drop-leaks leaves them out of the training pairs, but not\n"
        "        other pairs of the same texts)"
    )
