"""Kills `angle-data llm-label` with SIGKILL in the middle of a run and counts what the next run asks again.

    python benchmarks/labelling/kill.py

2,000 requests (1,000 texts, synonyms and antonyms), 64 in flight, at 50 ms, killed when about 10, 50 and 90 %
of them are answered, then run again to the end. `asked twice` is what the service answered beyond one reply a
request: what was in flight at the kill. `same bytes` compares candidates.jsonl with that of a run without a
kill.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from served import counts, service

_ANGLE_DATA = [sys.executable, "-c", "from angle_data.cli import main; main()"]


def command(texts: Path, out: Path, url: str, concurrency: int) -> list[str]:
    """Return the command line of the run."""
    options = ["--texts", str(texts), "--out", str(out), "--base-url", url, "--quiet"]
    return [*_ANGLE_DATA, "llm-label", "--model", "tiny", *options, "--concurrency", str(concurrency)]


def lines(path: Path) -> int:
    """Return the number of finished lines, 0 where there is no file yet."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed(line: list[str], journal: Path, at: int) -> int:
    """Run `line`, kill it once `journal` has `at` lines, and return how many it has then."""
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    while lines(journal) < at and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    return lines(journal)


def main() -> None:
    """Run without a kill, then once for every share, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 0.5, 0.9])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, service("--latency", "0.05") as url:
        texts, whole = Path(folder) / "texts.jsonl", Path(folder) / "whole"
        rows = ({"text": f"Cluster {i} did not start again after the update."} for i in range(given.texts))
        texts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        subprocess.run(command(texts, whole, url, given.concurrency), check=True, stdout=subprocess.DEVNULL)
        requests = counts(url)["counts"]["200"]
        expected = (whole / "candidates.jsonl").read_bytes()
        print("| killed at | journalled | asked twice | same bytes |\n| --- | --- | --- | --- |")
        for share in given.shares:
            run = Path(folder) / f"run-{share}"
            line = command(texts, run, url, given.concurrency)
            kept = killed(line, run / "journal.jsonl", int(requests * share))
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
            twice = counts(url)["counts"]["200"] - requests
            same = (run / "candidates.jsonl").read_bytes() == expected
            print(f"| {share:.0%} | {kept} | {twice} | {'yes' if same else 'NO'} |", flush=True)


if __name__ == "__main__":
    main()
