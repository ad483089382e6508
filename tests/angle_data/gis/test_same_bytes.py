"""The build does not depend on the order of Python's sets, which changes from process to process."""

import os
import subprocess
import sys

from fake_gis_store import store_world
from fake_github_world import make_world

BUILD = """
import sys
from pathlib import Path
from angle_data.gis.build import build
build.draw_figures = lambda *_: ()
build.build_gis(build.BuildConfig(Path(sys.argv[1]), negatives=2.0))
"""


def test_two_hash_seeds_give_the_same_bytes(tmp_path):
    found = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        store_world(make_world(5, repos=2, issues=120, duplicates=0.3, comments=2.0), out)
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", BUILD, str(out)], env=environment, check=True, timeout=120)
        found.append(
            {
                path.relative_to(out).as_posix(): path.read_bytes()
                for path in out.rglob("*")
                if path.is_file() and not path.name.startswith((".", "crawl"))
            }
        )
    assert found[0] == found[1]
    assert "dataset/data/train-00000-of-00001.parquet" in found[0]
    assert "audit/links.jsonl" in found[0]
