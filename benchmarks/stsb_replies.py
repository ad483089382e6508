"""The replies and grades of the folder stsb/, put together with STS-B's sentences again.

The folder holds what language models wrote and graded, and no sentence of STS-B:

* texts.jsonl names rows of the training split,
* replies have `<Text>` where they repeat their text (`<text>`: with a small first letter),
* mined pairs name sentences: `0213:text` is the text, `0213:d4` what annotator-d wrote at degree 4,
* grader-m.jsonl has grades of rows of the validation split.

Rows count from 0.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from angle_data.jsonl import read_jsonl, write_jsonl

STORED = Path(__file__).with_name("stsb")


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [row for _, row in read_jsonl(path)]


def texts_of(train: Path) -> dict[str, str]:
    """Return the 300 texts by their ids, from STS-B's training split (jsonl.gz).

    Raises:
        SystemExit: The file has its rows in another order, or is another edition.
    """
    with gzip.open(train, "rt", encoding="utf-8") as stream:
        sentences = [json.loads(line)["sentence1"].strip() for line in stream]
    texts = {}
    for row in rows_of(STORED / "texts.jsonl"):
        text = sentences[row["row"]] if row["row"] < len(sentences) else ""
        if not hashlib.sha256(text.encode()).hexdigest().startswith(row["sha256"]):
            sys.exit(f"{train}, row {row['row']}: not the sentence that the replies answer; another edition?")
        texts[row["id"]] = text
    return texts


def with_text(reply: str, text: str) -> str:
    """Return a stored reply with its text where it repeats it."""
    return reply.replace("<Text>", text).replace("<text>", text[0].lower() + text[1:])


def restore(train: Path, home: Path) -> Path:
    """Write texts, raw replies and grades to a folder, as `llm-label --replies` and `llm-score` read them.

    Args:
        train: STS-B's training split.
        home: Gets texts.jsonl, annotator-{a,b,c,d}.jsonl and grader-e.jsonl.

    Returns:
        The folder `home`.
    """
    texts = texts_of(train)
    home.mkdir(parents=True, exist_ok=True)
    write_jsonl(home / "texts.jsonl", ({"id": name, "text": text} for name, text in texts.items()))
    for annotator in ("annotator-a", "annotator-b", "annotator-c"):
        write_jsonl(home / f"{annotator}.jsonl", _polarity_rows(texts, annotator))
    degrees = {
        row["id"]: {degree: with_text(said, texts[row["id"]]) for degree, said in row["reply"].items()}
        for row in rows_of(STORED / "annotator-d.jsonl")
    }
    write_jsonl(home / "annotator-d.jsonl", _degree_rows(texts, degrees))
    write_jsonl(home / "grader-e.jsonl", _graded_rows(texts, degrees))
    return home


def _polarity_rows(texts: Mapping[str, str], annotator: str) -> Iterator[dict[str, Any]]:
    for row in rows_of(STORED / f"{annotator}.jsonl"):
        text = texts[row["id"]]
        yield {
            "id": row["id"],
            "text": text,
            "polarity": row["polarity"],
            "annotator": annotator,
            "reply": with_text(row["reply"], text),
        }


def _degree_rows(texts: Mapping[str, str], degrees: Mapping[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    for name, reply in degrees.items():
        said = json.dumps(reply, ensure_ascii=False)
        yield {
            "id": name,
            "text": texts[name],
            "task": "degrees",
            "annotator": "annotator-d",
            "reply": said,
        }


def _graded_rows(texts: Mapping[str, str], degrees: Mapping[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    def sentence(name: str) -> str:
        source, _, which = name.partition(":")
        return texts[source] if which == "text" else degrees[source][which.removeprefix("d")]

    for row in rows_of(STORED / "grader-e.jsonl"):
        one, other = sentence(row["one"]), sentence(row["other"])
        yield {
            "text1": one,
            "text2": other,
            "kind": row["kind"],
            "grader": "grader-e",
            "score": row["score"],
        }
