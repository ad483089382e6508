"""The commands `angle-data llm-label`, `llm-score`, `probe` and `mine`: options in, one call, a table out.

Their options are the fields of their configs. Imports nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.calling.defaults import command_words
from angle_data.calling.options import with_options
from angle_data.errors import InputError
from angle_data.labelling.config import LabelConfig, ProbeConfig, ScoreConfig
from angle_data.labelling.mine import MineConfig
from angle_data.labelling.mine import mine as draw
from angle_data.text import counted

if TYPE_CHECKING:
    from angle_data.labelling.asking.forecast import SessionPlan
    from angle_data.labelling.asking.session import SessionResult
    from angle_data.labelling.pilot import PilotResult


def _label_defaults(given: dict[str, Any]) -> None:
    """Fill in the run folder, by model and prompts; a complete example where no texts are named."""
    model, prompts = given["model"], given["prompts"]
    name = re.sub(r"[^\w.-]+", "-", f"{model}" if prompts == "structured" else f"{model}-{prompts}")
    out = Path("runs", name)
    if given["texts"] is None:
        line = command_words("angle-data llm-label", {"model": model, "texts": "notes.jsonl", "out": out})
        raise InputError(f"give the texts: `{line}`")
    if given["out"] is None:
        given["out"] = out


@with_options(LabelConfig, dry_run=True, complete=_label_defaults, texts=None, out=None)
def llm_label(config: LabelConfig, dry_run: bool) -> tuple[Mapping[str, Any], str]:
    """Have a language model write synonymous and opposite sentences for every text, or one for each degree.

    `--prompts degrees` asks for a sentence at each degree of similarity, 5 (same meaning) to 1 (same topic).
    Replies are journalled as they arrive: nothing is asked, or paid for, twice. Exit codes: 0 all answered,
    except texts set aside because the server refused them or gave no reply while it answered others; 1 an
    error to fix, every request failed, or no reply is usable; 75 a limit was reached, batches are still in
    progress, the server went away, or some requests failed (rerun the same command to resume); 130
    interrupted (Ctrl-C, SIGTERM, SIGHUP). What was answered is written in every case.

    Example: angle-data llm-label --model chatgpt --texts notes.jsonl --out runs/chatgpt
    --max-usd 5
    """
    from angle_data.labelling.label import label
    from angle_data.labelling.pilot import pilot, plan_label

    if dry_run:
        return _told(plan_label(config))
    return _told(label(config) if config.pilot is None else pilot(config))


@with_options(ScoreConfig, dry_run=True, temperature=0.0, max_tokens=1024)
def llm_score(config: ScoreConfig, dry_run: bool) -> tuple[Mapping[str, Any], str]:
    """Have a language model grade pairs from 0 (unrelated) to 5 (same meaning).

    Pairs are the candidates of run folders, and rows of files (--pairs). Each distinct pair is graded once,
    regardless of order and source. A pair without a grade is asked again alone, then in reverse order, and is
    then set aside in rejected.jsonl. The grades serve for graded labels and cross-checks: `angle-data
    ensemble --scores RUN`. Replies are journalled as they arrive: nothing is asked, or paid for, twice. Exit
    codes as for llm-label.

    Example: angle-data llm-score runs/llama runs/chatglm --pairs mined.jsonl --model chatgpt --out
    runs/graded --pairs-per-call 10
    """
    from angle_data.labelling.pilot import pilot
    from angle_data.labelling.score import plan_score, score

    if dry_run:
        return _told(plan_score(config))
    return _told(score(config) if config.pilot is None else pilot(config))


def _told(done: SessionPlan | SessionResult | PilotResult) -> tuple[Mapping[str, Any], str]:
    return done.counts, str(done)


@with_options(ProbeConfig)
def probe(config: ProbeConfig) -> tuple[Mapping[str, Any], str]:
    """Ask a model two cheap questions before you spend money on it, and show what the answers tell.

    One line each: whether address and account work, which form of JSON it takes, how it marks its thoughts
    and counts tokens, whether it cuts long prompts without a word, its price, and the limits that its headers
    tell. The cost is said first: about 5,200 tokens. Exit codes as for llm-label.

    Example: angle-data probe --model my-model --base-url http://localhost:8000/v1
    """
    from angle_data.labelling.probe import probe as ask

    found = ask(config)
    return found.found, str(found)


@with_options(MineConfig)
def mine(config: MineConfig) -> tuple[dict[str, Any], str]:
    """Draw pairs for llm-score to grade: among the texts, or among the sentences written for each of them.

    Pairs of your own texts (near, between or random) are what a model will be asked to compare. With run
    folders instead, both sentences of a pair were written for the same text. The same texts or runs and
    options give the same file.

    Example: angle-data mine --texts notes.jsonl --out mined.jsonl --n 2000

    With --negatives, find instead what looks like an answer to a query and is none, to train a search with.

    Example: angle-data mine runs/degrees runs/second --out written.jsonl

    Example: angle-data mine --negatives answered.jsonl --texts passages.jsonl --out negatives.jsonl
    """
    drawn = draw(config)
    if config.negatives:
        said = [
            f"{drawn['negatives']:,} negatives for {counted(drawn['pairs'], 'pair')}",
            f"{counted(drawn['too near'], 'candidate')} too near the positive left out",
            f"{counted(drawn['not found'], 'pair')} left out: the search does not find the positive",
            f"{counted(drawn['alone'], 'pair')} left out: the search finds nothing else",
        ]
        return {"out": config.out, **drawn}, "\n".join([*said, f"negatives -> {config.out}"])
    lines = [f"{kind:<8} {count:>8,} pairs" for kind, count in drawn.items()]
    return {"out": config.out, "pairs": drawn}, "\n".join([*lines, f"pairs -> {config.out}"])
