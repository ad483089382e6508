"""The commands `angle-data llm-label`, `llm-score` and `mine`: options in, one call, a short table out.

Their options are the fields of their configs. Imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from angle_data.calls import with_options
from angle_data.labelling.config import LabelConfig, ScoreConfig
from angle_data.labelling.mine import MineConfig, summary
from angle_data.labelling.mine import mine as draw

if TYPE_CHECKING:
    from angle_data.labelling.asking.forecast import SessionPlan
    from angle_data.labelling.asking.session import SessionResult
    from angle_data.labelling.pilot import PilotResult
    from angle_data.labelling.plan import SpendingPlan


@with_options(LabelConfig, dry_run=True)
def llm_label(config: LabelConfig, dry_run: bool) -> tuple[Mapping[str, Any], str]:
    """Have a language model write synonymous and opposite sentences for every text, or one for each degree.

    `--prompts degrees` asks for a sentence at each degree of similarity, 5 (same meaning) to 1 (same topic).
    Replies are journalled as they arrive: nothing is asked, or paid for, twice. Exit codes: 0 all answered,
    except texts set aside because the server refused them or gave no reply while it answered others; 1 an
    error to fix, every request failed, or no reply is usable; 75 a limit was reached, batches are still in
    progress, the server went away, or some requests failed (rerun the same command to resume); 130
    interrupted (Ctrl-C, SIGTERM, SIGHUP). What was answered is written in every case.

    Example: angle-data llm-label --model chatgpt --prompts structured --texts notes.jsonl --out runs/chatgpt
    --max-usd 5

    Plan what to ask for: angle-data llm-label --plan --purpose topics --budget-usd 20 --model chatgpt
    --texts notes.jsonl --out runs
    """
    from angle_data.labelling.label import label, plan_label
    from angle_data.labelling.pilot import pilot
    from angle_data.labelling.plan import plan_spending

    if config.plan:
        return _told(plan_spending(config))
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
    from angle_data.labelling.score import plan_score, score

    return _told(plan_score(config) if dry_run else score(config))


def _told(done: SessionPlan | SessionResult | PilotResult | SpendingPlan) -> tuple[Mapping[str, Any], str]:
    from angle_data.labelling.asking.forecast import SessionPlan
    from angle_data.labelling.asking.session import SessionResult

    if isinstance(done, SessionPlan):
        return done.counts, _plan_text(done)
    return done.counts, _result_text(done) if isinstance(done, SessionResult) else str(done)


@with_options(MineConfig)
def mine(config: MineConfig) -> tuple[dict[str, Any], str]:
    """Draw pairs for llm-score to grade: among the texts, or among the sentences written for each of them.

    Pairs of your own texts (near, between or random) are what a model will be asked to compare. With run
    folders instead, both sentences of a pair were written for the same text. The same texts or runs and
    options give the same file.

    Example: angle-data mine --texts notes.jsonl --out mined.jsonl --n 2000

    Example: angle-data mine runs/degrees runs/second --out written.jsonl
    """
    result = draw(config)
    return asdict(result), summary(result)


def _plan_text(plan: SessionPlan) -> str:
    about = {"model", "counted_by", "paid", "usd", "spent_usd"}
    lines = [_table({name: count for name, count in plan.counts.items() if name not in about})]
    if plan.usd is not None:
        spent = f" ({plan.spent_usd:.4f} USD spent so far)" if plan.spent_usd else ""
        lines.append(f"about {plan.usd:.4f} USD{spent}")
    elif plan.paid:
        lines.append(f"cost unknown: no price is listed for {plan.model}; give --price IN,OUT")
    return "\n".join([*lines, f"source of the token counts: {plan.counted_by}"])


def _result_text(result: SessionResult) -> str:
    """Show what a session did, without needless zeros."""
    counts = dict(result.counts)
    failed, rejected, degrees = counts.pop("failed"), counts.pop("rejected"), dict(counts.pop("degrees", {}))
    always = ("requests", "asked", "kept")
    shown = {name: count for name, count in counts.items() if count or name in always}
    shown |= {f"failed: {kind}": count for kind, count in failed.items()}
    shown |= {f"rejected: {reason}": count for reason, count in rejected.items()}
    told = f"{_degrees_text(degrees)}\n" if degrees else ""
    return f"{_table(shown)}\n{told}{result.model} -> {result.run}"


def _degrees_text(degrees: dict[str, Any]) -> str:
    """Show the sentences of each degree, and how many words they share with their texts."""
    share = degrees.pop("higher_shares_more")
    lines = [
        f"degree {name}: {row['kept']:,} kept, word overlap {row['overlap']:.2f}"
        for name, row in degrees.items()
        if row["kept"]
    ]
    if share is not None:
        lines.append(f"a 5 or 4 shares more words than a 3 or 2: {share:.0%} (50% tells nothing)")
    return "\n".join(lines)


def _table(rows: dict[str, int]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name.replace('_', ' '):<{width}} {count:>9,}" for name, count in rows.items())
