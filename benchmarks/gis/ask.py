"""What `gis --ask` brings on labelled comments, and what it costs.

    python benchmarks/gis/ask.py                      # held-out, languages-held-out, further, languages
    python benchmarks/gis/ask.py held-out             # one of them
    GIS_FRESH=comments-fresh.jsonl python benchmarks/gis/ask.py fresh

The files are those of `markers.py`; `fresh` is a file elsewhere, whose lines have `expected` and one
`certainty` in place of `links`. What the product would send is sent: each doubtful comment that names an
issue, without titles, for these comments have no threads. The replies are those of a language model that
saw the text of each question and no label (ask-replies.jsonl, by the hash of the question); they pass the
product's own reader. They were written before the prompt said when "I believe" is a statement.

Each row of a table adds one kind of doubt: comments that speak of a duplicate without a link; those that name
an issue and say something related, which is what `--ask` sends; guesses, as with `--ask-guesses`.
Scored as by `markers.py`. The price is in requests for 1,000
comments, and these for each point of recall. In these files nearly every comment speaks of duplicates; of
usual comments few are doubtful.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import options
from markers import score

from angle_data.gis.ask.job import PROMPT
from angle_data.gis.ask.questions import Question, issues_named
from angle_data.gis.ask.replies import read_reply
from angle_data.gis.build.answers import Answers, CommentAnswer
from angle_data.gis.comments.doubts import doubt_of
from angle_data.gis.comments.reading import Reading, read_comment
from angle_data.gis.comments.references import PUBLIC_HOSTS
from angle_data.jsonl import read_jsonl
from angle_data.labelling.asking.budget import estimate
from angle_data.labelling.prompts import load_prompt
from angle_data.resources import packaged_folder
from angle_data.text import content_id

_HERE = Path(__file__).parent
_OURS = ("held-out", "languages-held-out", "further", "languages")
_STEPS = {
    "markers alone": (),
    "+ no link": ("no_link",),
    "+ related": ("no_link", "related"),
    "+ guesses": ("no_link", "related", "guess"),
}


def main() -> None:
    """Score files with every kind of doubt, and print their tables."""
    parser = options(__doc__)
    parser.add_argument("comments", nargs="*", help="held-out, languages-held-out, further, languages, fresh")
    replies = {row["comment"]: row["reply"] for _, row in read_jsonl(_HERE / "ask-replies.jsonl")}
    for name in parser.parse_args().comments or _OURS:
        path = Path(os.environ["GIS_FRESH"]) if name == "fresh" else _HERE / f"comments-{name}.jsonl"
        report(name, list(rows_of(path)), replies)


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the comments of a file as `markers.py` takes them; those that need their thread are left out."""
    for _, row in read_jsonl(path):
        if "expected" not in row:
            yield row
        elif not row.get("needs_context"):
            links = [{**link, "certainty": row["certainty"]} for link in row["expected"]]
            yield {**row, "links": links}


def report(name: str, rows: list[dict[str, Any]], replies: dict[str, str]) -> None:
    """Print a row for each step, what one request takes, and the languages with all asked."""
    print(
        f"{name}: {len(rows)} comments\n\n{'':<15} asked   P      R      false  tentative as explicit  price"
    )
    alone = 0.0
    for step, kinds in _STEPS.items():
        total, asked, _ = tally(rows, replies, kinds)
        precision, recall = rates(total)
        alone = alone if kinds else recall
        share = 1_000 * asked / len(rows)
        gained = 100 * (recall - alone)
        price = f"{share:.0f} for 1,000" + (f", {share / gained:.0f} a point" if gained > 0 else "")
        tentative = f"{total['tentative taken for explicit']} of {total['tentative']}"
        print(
            f"{step:<15} {asked:<7} {precision:.3f}  {recall:.3f}  {total['false']:<6} {tentative:<22} "
            + (price if kinds else "")
        )
    prompt = load_prompt(packaged_folder("prompts") / PROMPT, {"issue", "named", "comment"})
    asked_of = [question for row in rows if (question := question_of(row)) is not None]
    tokens = [estimate(prompt.fill(question.values)) for question in asked_of]
    print(f"\nabout {sum(tokens) / max(len(tokens), 1):.0f} prompt tokens a request, without titles")
    _, _, before = tally(rows, replies, ())
    _, _, after = tally(rows, replies, _STEPS["+ guesses"])
    for lang in sorted(before):
        shown = [f"P {p:.3f} R {r:.3f}" for p, r in (rates(before[lang]), rates(after[lang]))]
        print(f"{lang}: {before[lang]['comments']:>3} comments, {shown[0]}, with --ask {shown[1]}")
    print()


def tally(
    rows: list[dict[str, Any]], replies: dict[str, str], kinds: Collection[str]
) -> tuple[Counter[str], int, dict[str, Counter[str]]]:
    """Return the counts over all comments, the number of requests, and the counts of each language."""
    total: Counter[str] = Counter()
    languages: dict[str, Counter[str]] = defaultdict(Counter)
    asked = 0
    for row in rows:
        said = _read(row)
        doubt = _doubt(row, said)
        if doubt in kinds and (question := question_of(row)) is not None:
            asked += 1
            said = answered(row, question, replies[content_id(question.source)])
        count = score(row, said)
        total += count
        if "lang" in row:
            languages[row["lang"]] += count
    return total, asked, languages


def question_of(row: dict[str, Any]) -> Question | None:
    """Return what would be asked about a comment; None if it is clear, or names no issue."""
    repo, number, body = row["repo"], row["number"], row["body"]
    named = issues_named([body], repo, number, PUBLIC_HOSTS)
    if not named or _doubt(row, _read(row)) is None:
        return None
    return Question(repo, number, "", body, "", tuple((*one, "") for one in named), PUBLIC_HOSTS)


def answered(row: dict[str, Any], question: Question, reply: str) -> Reading:
    """Return what is read in a comment with the reply to its question, without what that denies."""
    judged = read_reply(reply, "done", question)
    refused = bool(judged.refused)
    answer = CommentAnswer(tuple(judged.confirmed), tuple(judged.unsure), refused, "", "", reply)
    answers = Answers()
    answers.add(row["repo"], row["number"], row["body"], answer)
    read = answers.reader(read_comment)
    said = read(row["body"], row["repo"], row["number"], author=row.get("author"))
    return replace(said, links=tuple(link for link in said.links if not answer.denies(link.target)))


def rates(count: Counter[str]) -> tuple[float, float]:
    """Return precision and recall of explicit links."""
    hit = count["hit"]
    return hit / max(hit + count["false"], 1), hit / max(hit + count["missed"], 1)


def _doubt(row: dict[str, Any], said: Reading) -> str | None:
    about = (row["body"], said, row["repo"], row["number"])
    return doubt_of(*about, author=row.get("author"), hosts=PUBLIC_HOSTS)


def _read(row: dict[str, Any]) -> Reading:
    return read_comment(row["body"], row["repo"], row["number"], author=row.get("author"))


if __name__ == "__main__":
    main()
