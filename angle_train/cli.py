"""The `angle-train` program: every command reads its options, calls one function and prints the result.

angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2 --out model
angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2 --pairs test.jsonl
angle-train encode --model model --texts texts.jsonl --out texts.npy
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from angle_data.calling.interrupts import nothing_kept
from angle_data.calling.options import with_options
from angle_data.calling.program import make_app, run_app
from angle_data.errors import AngleError, InputError
from angle_train.api import evaluate, fit
from angle_train.given import check_inputs, split_values
from angle_train.options import EncodeConfig, EvalOptions, FitOptions

app = make_app("angle-train", "Labelled sentence pairs in, embedding model and report out.")


@app.command("fit")
@with_options(FitOptions)
def fit_model(given: FitOptions) -> tuple[str, str, *tuple[AngleError, ...]]:
    """Fine-tune a model on labelled pairs and report whether that helped.

    Example: angle-train fit --data pairs/dataset --backbone sentence-transformers/all-MiniLM-L6-v2
    --dev dev.jsonl --test test.jsonl --out model

    On several GPUs: torchrun --nproc-per-node 4 -m angle_train fit …
    """
    options, values = split_values(given)
    from angle_train.report.text import results_table
    from angle_train.training.processes import is_first

    report = fit(**options, **values).report
    from angle_train.report.verdict import IN_TUNED_HARMFUL  # it loads torch, as fit has done by now

    if not is_first():
        raise typer.Exit
    out = given.out
    verdict = report.verdict.lines
    page = out / "report.html"
    lines = [results_table(report.results), "", *verdict, f"model: {out}   report: {page}"]
    if report.kept == "backbone" and (out / "tuned").is_dir():  # a run of an earlier version has none
        harmful = report.verdict.advice.endswith(IN_TUNED_HARMFUL)
        why = "to look at" if harmful else "take it all the same"
        lines.append(f'tuned: {out / "tuned"}   {why}: SentenceTransformer("{out / "tuned"}")')
    found = (out / "report.json").read_text(encoding="utf-8").rstrip("\n"), "\n".join(lines)
    doubt = verdict[0].removesuffix(".") if report.kept == "backbone" else report.verdict.flattered
    if not given.require_better or not doubt:
        return found
    return *found, InputError(f"--require-better: {doubt}; {page} has the figures")


@app.command("eval")
@with_options(EvalOptions)
def eval_models(given: EvalOptions) -> tuple[str, str, *tuple[AngleError, ...]]:
    """Measure models on scored pairs, a search or tasks, with intervals and differences from a baseline.

    Example: angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2
    --pairs test.jsonl

    Example: angle-train eval --model model --baseline sentence-transformers/all-MiniLM-L6-v2
    --search folder

    Example: angle-train eval --model model --task sts --data-dir data
    """
    from angle_train.report.text import results_table

    with nothing_kept():
        found = evaluate(**asdict(given)).evaluation
    text = "\n".join([results_table(found.results), *found.notes])
    if not found.failed:
        return found.to_json(), text
    failed = f"not measured: {', '.join(found.failed)}; the reasons stand above"
    return found.to_json(), text, InputError(failed)


@app.command("encode")
@with_options(EncodeConfig)
def encode_texts(config: EncodeConfig) -> tuple[dict[str, Any], str]:
    """Embed the texts of a file, one embedding per row, in row order.

    Example: angle-train encode --model model --texts texts.jsonl --out texts.npy --normalize
    """
    from angle_train.model.load import check_training_extra

    check_training_extra("angle-train encode")
    check_inputs([], [config.model])
    from angle_train.encode import encode_file

    with nothing_kept():
        found = encode_file(config)
    return found, f"{found['texts']} texts, embeddings of width {found['width']}: {found['out']}"


def main() -> None:
    """Run the program."""
    run_app(app, "angle-train")


if __name__ == "__main__":
    main()  # python -m angle_train.cli, as torchrun -m may start it
