"""How the steps after the network grow: CPU seconds for n, 2n, 4n and 8n texts or comments, in one run.

    python benchmarks/labelling/growth.py [--texts 25000] [--steps derive ensemble near mine comments]

derive     the replies of a journal to candidates: two synonyms and two antonyms of each text
ensemble   these candidates to a data set
near       what of `ensemble` puts near sources into one split, alone
mine       pairs among the texts, by words
comments   as many comments to what they state; one in five speaks of a duplicate

A text has 8 to 20 words of a made-up language, drawn as words are (the k-th most often with a share of 1/k).
One in fifty is another with a word changed. Linear is a ratio of 2.0. Ratios hold on a busy machine, seconds
do not.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from calls import ChatRequest, Reply
from common import options

from angle_data.annotators.base import Annotator
from angle_data.annotators.choice import ANNOTATORS
from angle_data.annotators.spec import AnnotatorSpec, EngineConfig
from angle_data.console import configure_logging
from angle_data.ensembling.build import build_ensemble
from angle_data.ensembling.config import EnsembleConfig
from angle_data.ensembling.splits import group_sources
from angle_data.gis.comments.reading import read_comment
from angle_data.jsonl import write_jsonl
from angle_data.labelling.config import LabelConfig
from angle_data.labelling.label import label
from angle_data.labelling.mine import MineConfig, mine
from angle_data.text import normalise

VOCABULARY = [
    f"{first}{second}{third}"
    for first in "bcdfghklmnprstvz"
    for second in "aeiou"
    for third in (
        "l",
        "n",
        "r",
        "s",
        "t",
        "nda",
        "rek",
        "sto",
        "lim",
        "vax",
        "gor",
        "pen",
        "tul",
        "mis",
        "zed",
    )
]
STATED = "Thanks for the report. Closing as a duplicate of #{}, please follow there."
PLAIN = "I see the same on two nodes after an upgrade; see the log of {} lines below.\n\n> {}\n\nAny idea?"


class Words:
    """Sentences of the made-up language; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.words = [*VOCABULARY, *(a + b for a in VOCABULARY[:150] for b in VOCABULARY[:150])]
        self.draw.shuffle(self.words)
        self.weights = [*accumulate(1 / rank for rank in range(1, len(self.words) + 1))]

    def sentence(self) -> str:
        """Return 8 to 20 words."""
        count = self.draw.randint(8, 20)
        return " ".join(self.draw.choices(self.words, cum_weights=self.weights, k=count))

    def changed(self, text: str) -> str:
        """Return the text with one of its words exchanged."""
        words = text.split()
        words[self.draw.randrange(len(words))] = self.draw.choice(self.words)
        return " ".join(words)

    def texts(self, count: int) -> Iterator[str]:
        """Yield so many texts, one in fifty all but the one before it."""
        last = self.sentence()
        for number in range(count):
            last = self.changed(last) if number % 50 == 49 else self.sentence()
            yield last


class Writer(Annotator):
    """Answers at once with two sentences as JSON; each repeats half of the words of the source."""

    def __init__(self, spec: AnnotatorSpec) -> None:
        del spec
        self.words = Words(2)

    async def stream(self, requests: Iterable[ChatRequest]) -> AsyncGenerator[Reply, None]:
        """Yield one reply a request."""
        for request in requests:
            half = " ".join(request.source.split()[::2])
            sentences = [f"{half} {self.words.sentence()}" for _ in range(2)]
            yield Reply(request.key, json.dumps({"sentences": sentences}), "stop", {}, 0.05)


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def comments(count: int) -> list[str]:
    """Return so many comments."""
    words = Words(3)
    return [
        STATED.format(number + 2) if number % 5 == 0 else PLAIN.format(number, words.sentence())
        for number in range(count)
    ]


def measure(count: int, steps: list[str]) -> dict[str, float]:
    """Return the CPU seconds of each step with so many texts."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="angle-growth-") as name:
        home = Path(name)
        texts, run = home / "texts.jsonl", home / "run"
        write_jsonl(texts, ({"id": f"t{i}", "text": text} for i, text in enumerate(Words(1).texts(count))))
        if {"derive", "ensemble"} & {*steps}:
            engine = EngineConfig("writer", engine="writer", base_urls=("http://localhost/v1",))
            config = LabelConfig(engine, texts, run, prompts="structured")
            label(config)
            (run / "candidates.jsonl").unlink()
            derived = cpu(lambda: label(config))
            if "derive" in steps:
                found["derive"] = derived
        if "ensemble" in steps:
            found["ensemble"] = cpu(lambda: build_ensemble(EnsembleConfig((run,), home / "pairs")))
        if "near" in steps:
            sources: dict[str, list[str]] = {normalise(text): [] for text in Words(1).texts(count)}
            found["near"] = cpu(lambda: group_sources(sources))
        if "mine" in steps:
            found["mine"] = cpu(lambda: mine(MineConfig(texts=texts, out=home / "mined.jsonl", n=count)))
        if "comments" in steps:
            bodies = comments(count)
            found["comments"] = cpu(lambda: [read_comment(body, "acme/app", 1) for body in bodies])
    return found


def main() -> None:
    """Print seconds and the ratio to half as many, a line for each size."""
    parser = options(__doc__)
    parser.add_argument("--texts", type=int, default=25_000, help="n; 8n is the largest")
    known = ["derive", "ensemble", "near", "mine", "comments"]
    parser.add_argument("--steps", nargs="+", choices=known, default=known)
    given = parser.parse_args()
    configure_logging(quiet=True)
    ANNOTATORS["writer"] = f"{__name__}:Writer"
    print(f"| texts | {' | '.join(given.steps)} |\n|{'---|' * (len(given.steps) + 1)}", flush=True)
    before: dict[str, float] = {}
    for count in (given.texts * factor for factor in (1, 2, 4, 8)):
        found = measure(count, given.steps)
        cells = (
            f"{found[step]:.1f}" + (f" ({found[step] / before[step]:.2f})" if before else "")
            for step in given.steps
        )
        print(f"| {count:,} | {' | '.join(cells)} |", flush=True)
        before = found


if __name__ == "__main__":
    main()
