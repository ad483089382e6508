"""What becomes of refusals, chatter, code fences, echoes and truncated replies: yield and mis-parses.

    python benchmarks/labelling/odd_replies.py [--share 0.1] [--seeds 3]

The replies are the recorded ones of examples/cloud-ops that hold two numbered sentences. A share of them is
spoilt, in equal parts by each kind of trouble, in wordings written for this script; so it is known which
sentences every reply offers. The whole command runs on them, journal and files included. For each kind, all
seeds together: replies, sentences offered (whole ones that are no copy of the source), kept, lost (offered
and not kept), wrong (kept and never offered: talk, halves, echoes), and replies that gave nothing and no
reason either. Exits with 1 if any sentence is wrong or any reply unexplained.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from served import ROOT

from angle_data.annotators import ANNOTATORS, AnnotatorSpec
from angle_data.annotators.base import ChatRequest, Reply
from angle_data.jsonl import read_jsonl
from angle_data.labelling.engine import EngineConfig
from angle_data.labelling.requests import LabelConfig
from angle_data.labelling.run import label
from angle_data.text import normalise

_RECORDED = sorted((ROOT / "examples" / "cloud-ops" / "replies").glob("*.jsonl"))
_TWO = re.compile(r"1\. (.+)\n2\. (.+)")
_OPENERS = (
    "Sure, happy to! Here are two sentences with the meaning you asked for:",
    "Absolutely. Below you will find 2 sentences:",
    "Of course! Two versions of your sentence:",
    "Okay, here's what I came up with:",
    "**Output:**",
)
_CLOSERS = (
    "I hope these are what you were looking for!",
    "Let me know if you would like me to make them shorter.",
    "Feel free to ask me for more of these.",
    "Note: both sentences keep the technical terms of the input sentence.",
    "Is there anything else I can help you with?",
)
_REFUSALS = (
    "I'm sorry, but I can't help with rewriting this sentence.",
    "I am not able to generate sentences about internal incidents.",
    "As an AI language model, I do not have enough context to paraphrase this.",
    "Unfortunately, I cannot assist with that request. Here is why:\n1. It is secret.\n2. I lack context.",
    "I apologize, but I can't provide an antonym for the given input sentence.",
    "Could you please provide the sentence that you would like me to rephrase?",
)


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A reply, why it ended, and the sentences that it offers."""

    text: str
    offered: tuple[str, ...]
    finish_reason: str = "stop"


def refusal(chooser: random.Random, source: str, one: str, two: str) -> Spoilt:
    """Declines."""
    return Spoilt(chooser.choice(_REFUSALS), ())


def chatter(chooser: random.Random, source: str, one: str, two: str) -> Spoilt:
    """Talks before and after its list."""
    mark = chooser.choice(("1. {}\n2. {}", "- {}\n- {}", "1) {}\n2) {}", "{}\n{}", '"{}"\n"{}"'))
    return Spoilt(
        f"{chooser.choice(_OPENERS)}\n\n{mark.format(one, two)}\n\n{chooser.choice(_CLOSERS)}", (one, two)
    )


def fence(chooser: random.Random, source: str, one: str, two: str) -> Spoilt:
    """Puts its answer in a code fence, as JSON or as it is."""
    data = chooser.choice(({"sentences": [one, two]}, [one, two], {"output": [{"text": one}, {"text": two}]}))
    inside = chooser.choice((json.dumps(data), json.dumps(data, indent=2), f"1. {one}\n2. {two}"))
    language = "" if inside.startswith("1") else "json"
    before = chooser.choice(("", f"{chooser.choice(_OPENERS)}\n"))
    return Spoilt(f"{before}```{language}\n{inside}\n```", (one, two))


def echo(chooser: random.Random, source: str, one: str, two: str) -> Spoilt:
    """Repeats the source as an item, or the form of the prompt, or goes on with a task of its own."""
    return chooser.choice(
        (
            Spoilt(f"1. {source}\n2. {two}", (two,)),
            Spoilt(f"1. {one}\n2. {source.upper()}", (one,)),
            Spoilt(f"Input sentence: {source}\nOutput:\n1. {one}\n2. {two}", (one, two)),
            Spoilt(f"1. {one}\n2. {two}\n\nInput sentence: The disk is full.\nOutput: No space.", (one, two)),
        )
    )


def truncation(chooser: random.Random, source: str, one: str, two: str) -> Spoilt:
    """Stops in the middle of its second sentence for want of tokens."""
    words = two.split()
    half = " ".join(words[: chooser.randrange(1, len(words))])
    text = chooser.choice(
        (
            f"1. {one}\n2. {half}",
            f'{{"sentences": [{json.dumps(one)}, {json.dumps(half)[:-1]}',
            f"{one}\n{half}",
        )
    )
    return Spoilt(text, (one,), "length")


KINDS: dict[str, Callable[[random.Random, str, str, str], Spoilt]] = {
    "refusal": refusal,
    "chatter": chatter,
    "fence": fence,
    "echo": echo,
    "truncation": truncation,
}


class Odd:
    """Gives the prepared replies by text and polarity."""

    replies: ClassVar[dict[tuple[str, str], Spoilt]] = {}

    def __init__(self, spec: AnnotatorSpec) -> None:
        pass

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply, None]:
        """Yield one reply a request."""
        for request in requests:
            spoilt = Odd.replies[request.source, request.task]
            yield Reply(request.key, spoilt.text, spoilt.finish_reason, {}, 0.0)


def recorded(path: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the two sentences of every reply that holds two, unquoted, different, no copy of the source."""
    found = {}
    for _, row in read_jsonl(path):
        match = _TWO.fullmatch(row["reply"].strip())
        forms = {normalise(text) for text in (row["text"], *(match.groups() if match else ()))}
        if match and len(forms) == 3 and not {match[1][0], match[2][0]} & set("\"'“"):
            found[row["text"], row["polarity"]] = (match[1], match[2])
    return found


def measure(path: Path, share: float, seed: int) -> dict[str, Counter[str]]:
    """Spoil one annotator's replies, run the command on them, and count by kind."""
    chooser = random.Random(f"{seed}{path.name}")
    kind_of: dict[tuple[str, str], str] = {}
    Odd.replies = {}
    for key, (one, two) in recorded(path).items():
        kind_of[key] = kind = chooser.choice(list(KINDS)) if chooser.random() < share else "as recorded"
        good = Spoilt(f"1. {one}\n2. {two}", (one, two))
        Odd.replies[key] = good if kind == "as recorded" else KINDS[kind](chooser, key[0], one, two)
    found: dict[str, Counter[str]] = {kind: Counter() for kind in ("as recorded", *KINDS)}
    with tempfile.TemporaryDirectory() as folder:
        for polarity in ("synonym", "antonym"):
            run = Path(folder) / polarity
            texts = Path(folder) / f"{polarity}.jsonl"
            if not (sources := [text for text, asked in Odd.replies if asked == polarity]):
                continue
            texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in sources), encoding="utf-8")
            engine = EngineConfig("odd", engine="odd", base_urls=("http://localhost/v1",))
            label(LabelConfig(engine, texts, run, polarity=polarity))
            count(run, polarity, kind_of, found)
    return found


def count(
    run: Path, polarity: str, kind_of: dict[tuple[str, str], str], found: dict[str, Counter[str]]
) -> None:
    """Compare what a run kept with what its replies offered."""
    kept: dict[str, list[str]] = {}
    for _, row in read_jsonl(run / "candidates.jsonl"):
        kept.setdefault(row["source"], []).append(row["text"])
    explained = {row["source"] for _, row in read_jsonl(run / "rejected.jsonl")}
    for (source, asked), spoilt in Odd.replies.items():
        if asked != polarity:
            continue
        counts, got = found[kind_of[source, asked]], Counter(kept.get(source, []))
        offered = Counter(spoilt.offered)
        counts["replies"] += 1
        counts["offered"] += offered.total()
        counts["kept"] += (got & offered).total()
        counts["lost"] += (offered - got).total()
        counts["wrong"] += (got - offered).total()
        counts["unexplained"] += not got and source not in explained
        for text in [*(got - offered), *(offered - got)]:
            print(f"  {kind_of[source, asked]}: {text!r} of {spoilt.text!r}", file=sys.stderr)


def main() -> None:
    """Run all seeds over all annotators and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    ANNOTATORS["odd"] = f"{__name__}:Odd"
    total: dict[str, Counter[str]] = {}
    for seed in range(given.seeds):
        for path in _RECORDED:
            for kind, counts in measure(path, given.share, seed).items():
                total.setdefault(kind, Counter()).update(counts)
    columns = ("replies", "offered", "kept", "lost", "wrong", "unexplained")
    print(f"| kind | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 1)}")
    total["all"] = sum(total.values(), Counter())
    for kind, counts in total.items():
        print(f"| {kind} | {' | '.join(f'{counts[name]:,}' for name in columns)} |")
    if total["all"]["wrong"] or total["all"]["unexplained"]:
        sys.exit("sentences were kept that no reply offered, or replies dropped without a reason")


if __name__ == "__main__":
    main()
