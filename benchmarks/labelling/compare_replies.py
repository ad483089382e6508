"""Does another parser read recorded replies alike? Compares an earlier commit with the working tree.

    git archive COMMIT angle_data prompts | tar x -C /tmp/before
    python benchmarks/labelling/compare_replies.py /tmp/before examples/cloud-ops/replies/*.jsonl

For each file: replies, those whose sentences (and degrees) are identical, sentences that only one of the two
keeps, and how often a reason differs. With --show, the replies that differ. $ANGLE_REPLIES may name further
folders. Prints a table; exit code 1 if any sentence was lost.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READ = """
import inspect, json, sys
sys.path.insert(0, sys.argv[1])
from angle_data.labelling.replies.parse import parse_reply
from angle_data.labelling.replies.degrees import parse_degrees
try:
    from angle_data.annotators.thinking import split_thinking
except ImportError:
    split_thinking = lambda text: (text, "")
FINISH = "finish" if "finish" in inspect.signature(parse_reply).parameters else "finish_reason"
for line in sys.stdin:
    row = json.loads(line)
    asked = row.get("polarity") or row.get("task")
    about = dict(source=str(row.get("text", "")).strip())
    about |= {FINISH: row.get("finish") or (None if FINISH == "finish_reason" else "unknown")}
    reply = row["reply"] if isinstance(row["reply"], str) else json.dumps(row["reply"])
    reply = split_thinking(reply)[0]
    if asked in ("synonym", "antonym"):
        parts = parse_reply(reply, size=2, polarity=asked, **about)
    else:
        parts = parse_degrees(reply, **about)
    print(json.dumps([list(part) for part in parts]))
"""


def parts_of(code: Path, path: Path) -> list[list[list]]:
    """What the parser under `code` makes of every reply of a file: (text, reason, degree) of each part."""
    done = subprocess.run(
        [sys.executable, "-c", READ, code],
        input=path.read_bytes(),
        capture_output=True,
        check=True,
        cwd=code,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    """Compare all files; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--show", type=int, default=0, metavar="N")
    options = parser.parse_args()
    folders = filter(None, os.environ.get("ANGLE_REPLIES", "").split(":"))
    lost = 0
    print(f"{'file':<44} {'replies':>7} {'alike':>7} {'lost':>5} {'new':>5} {'reasons':>7}")
    more = [each for folder in folders for each in sorted(Path(folder).glob("*.jsonl"))]
    for path in [*options.files, *more]:
        rows = [json.loads(line) for line in path.open()]
        if "reply" not in rows[0]:
            continue
        before, now = parts_of(options.before, path), parts_of(ROOT, path)
        counts, shown = Counter(), 0
        for row, old, new in zip(rows, before, now, strict=True):
            kept_old, kept_new = ({(p[0], p[2]) for p in parts if p[1] is None} for parts in (old, new))
            counts["alike"] += kept_old == kept_new
            counts["lost"] += len(kept_old - kept_new)
            counts["new"] += len(kept_new - kept_old)
            reasons = [Counter(p[1] for p in parts) for parts in (old, new)]
            counts["reasons"] += reasons[0] != reasons[1]
            if shown < options.show and (kept_old != kept_new):
                shown += 1
                print(f"--- {row.get('text')!r}\n{row['reply']!r}\n  before {old}\n  now    {new}")
        lost += counts["lost"]
        name = "/".join(path.parts[-3:])
        widths = {"alike": 7, "lost": 5, "new": 5, "reasons": 7}
        table = " ".join(f"{counts[name]:>{width}}" for name, width in widths.items())
        print(f"{name[-44:]:<44} {len(rows):>7} {table}")
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
