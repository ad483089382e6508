"""Run every benchmark in turn: `make bench`. Many hours on a CPU; finished trainings are not repeated.

Options (--seeds, --precision) go to the quality benchmarks of this folder; the others take none of them. Not
run are training/objectives.py (chooses the presets), training/operating_curve.py (chooses the rule),
training/few_labels.py (more than a day), annotation.py, labelling/scale.py (half an hour), and paper.py
(needs the hub and a GPU).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
QUALITY = [
    ["llm_supervised.py", "cloud-ops"],
    ["llm_supervised.py", "stsb"],
    ["llm_ensemble.py", "cloud-ops", "--flip", "annotator-b:0.2"],
    ["llm_ensemble.py", "stsb"],
]
OTHERS = [
    ["training/quality.py"],  # its seeds and precision are its own
    ["training/speed.py"],
    ["labelling/throughput.py"],
    ["labelling/rate_limit.py"],
    ["gis/markers.py"],
    ["gis/crawl.py"],
    ["gis/build.py"],
]

if __name__ == "__main__":
    for command in [*([*quality, *sys.argv[1:]] for quality in QUALITY), *OTHERS]:
        print("\n$ python benchmarks/" + " ".join(command), flush=True)
        subprocess.run([sys.executable, str(HERE / command[0]), *command[1:]], check=True)
