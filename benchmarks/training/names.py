"""Writes a quarter of the general texts, and of specialist.jsonl, again with made-up names in them.

    python benchmarks/training/names.py    # general/names.jsonl

Texts of other domains are full of names that a tokenizer cuts into rare pieces: genes, parts, packages.
In every fourth group of texts (`id` up to its last hyphen) some words give way to names, the same word to the
same name in all of the group, so that some pairs of texts share a name and others differ in nothing else
(../log/names-kept.md). Where ids of two files are the same, two groups of four count as one of eight. Texts
in which nothing changes are left out. No model and no list of real names is used, so a name that exists is
one by chance.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import ROOT, options  # noqa: E402

from angle_data.jsonl import read_jsonl, write_jsonl  # noqa: E402

HERE = Path(__file__).resolve().parent
GENERAL = ROOT / "general"
FILES = (
    *(GENERAL / name for name in ("texts.jsonl", "genres.jsonl", "long.jsonl", "answers.jsonl")),
    GENERAL / "specialist.jsonl",
)
OUT = GENERAL / "names.jsonl"
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]{3,}")
_COMMON = """about after again against also because been before being between could does doing during each
every from have into just more most must only other over same shall should some such than that their them then
there these they this those through under very were what when where which while whose will with within without
would your yours another"""
_ONSETS = "b br c ch d dr f fl g gr h j k kl l m n p ph pl qu r s sc sh st t th tr v w x z"
_SYLLABLES = [
    onset + vowel for onset in _ONSETS.split() for vowel in ("a", "e", "i", "o", "u", "y", "ai", "ou", "ei")
]
_ENDINGS = ["n", "s", "l", "r", "x", "mab", "ase", "in", "ol", "ix", "on", "um", "th", "k", ""]
_EVERY = 4  # one group in so many; names in all of them were hardly better in a trial (../log/names-kept.md)
_RARE = 6  # words of one text of the group that give way, at most


def made_up(random: Random) -> str:
    """Return a name: an abbreviation (KRT-12), an identifier (vm.nouto) or a word (Thibaquer)."""
    kind = random.random()
    if kind < 0.25:
        letters = "".join(random.choice("ABCDEFGHIKLMNPRSTVXYZ") for _ in range(random.randint(2, 4)))
        return letters + random.choice(["", str(random.randint(1, 40)), f"-{random.randint(1, 99)}"])
    if kind < 0.35:
        letters = "".join(random.choice("abcdefghiklmnprstvxyz") for _ in range(random.randint(2, 3)))
        return letters + random.choice("-_.") + "".join(random.choice(_SYLLABLES) for _ in range(2))
    word = "".join(random.choice(_SYLLABLES) for _ in range(random.randint(2, 3))) + random.choice(_ENDINGS)
    return word.capitalize() if random.random() < 0.4 else word


def with_names(group: str, texts: Sequence[str]) -> list[str]:
    """Return the texts of a group, two to four words they share and some of single ones made names."""
    random = Random(f"names of {group}")
    common = {*_COMMON.split()}
    counts = Counter(word for text in texts for word in {w.lower() for w in _WORD.findall(text)} - common)
    shared = [word for word, count in counts.items() if count > 1]
    single = [word for word, count in counts.items() if count == 1]
    for words in (shared, single):
        words.sort()  # a set has no order of its own
        random.shuffle(words)
    chosen = [*shared[: random.randint(2, 4)], *single[:_RARE]]
    names = {word: made_up(random) for word in chosen}
    return [_WORD.sub(lambda found: names.get(found.group().lower(), found.group()), text) for text in texts]


def rows(files: Sequence[Path] = FILES) -> Iterator[dict[str, Any]]:
    """Yield the changed texts of files, group by group."""
    groups: dict[str, list[str]] = {}
    for file in files:
        for _, row in read_jsonl(file):
            groups.setdefault(row["id"].rpartition("-")[0], []).append(row["text"])
    for group in [*groups][::_EVERY]:
        texts = groups[group]
        for number, (text, changed) in enumerate(zip(texts, with_names(group, texts), strict=True), 1):
            if changed != text:
                yield {"id": f"{group}-{number}n", "text": changed}


def main() -> None:
    """Write the file and say how many texts it has."""
    options(__doc__).parse_args()
    found = [*rows()]
    write_jsonl(OUT, found)
    print(f"{len(found):,} texts: {OUT}")


if __name__ == "__main__":
    main()
