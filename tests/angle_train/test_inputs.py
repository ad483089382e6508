"""What is wrong with a user's files is said before torch is loaded, which takes seconds."""

import json
import subprocess
import sys

CALL = """
import json, logging, sys
from angle_data.errors import InputError
from angle_train import fit

logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)
data, backbone, out = sys.argv[1:]
try:
    fit(data, backbone=backbone, out=out)
except InputError as error:
    print(error)
print("torch" in sys.modules)
"""


def test_files_are_read_before_torch_is_loaded(tiny_model_dir, tmp_path):
    data = tmp_path / "pairs.jsonl"
    data.write_text(json.dumps({"text1": "a", "text2": "b", "score": "high"}) + "\n")
    found = subprocess.run(
        [sys.executable, "-c", CALL, str(data), str(tiny_model_dir), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=True,
    )
    first, *_, error, loaded = found.stdout.splitlines()
    assert first == "reading the pairs"
    assert error.startswith(f"{data}:1: ")
    assert loaded == "False"
