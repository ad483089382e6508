"""Every command refuses a mistyped path before it imports anything that takes seconds."""

import json
import os
import subprocess
import sys

# Runs command after command and says of each what it printed, how it ended, and whether torch was imported.
PROGRAM = """
import contextlib, io, json, sys
from angle_train.cli import main

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["angle-train", *arguments]
    code, told = 0, io.StringIO()
    with contextlib.redirect_stderr(told):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    print(json.dumps([code, told.getvalue(), "torch" in sys.modules]))
"""


def test_no_command_imports_torch_to_say_that_something_is_not_there(tmp_path, tiny_model_dir):
    pairs, full, model = tmp_path / "pairs.jsonl", tmp_path / "full", str(tiny_model_dir)
    pairs.write_text('{"text1": "a", "text2": "b", "score": 1}\n')
    full.mkdir()
    (full / "thesis.doc").write_text("")
    fit = ["fit", "--data", str(pairs), "--backbone", model]
    cases = {
        "none.jsonl does not exist; check the path": [*fit, "--test", "none.jsonl", "--out", "x"],
        "model directory ./none does not exist": ["fit", *fit[1:3], "--backbone", "./none", "--out", "x"],
        f"--out {pairs} is a file; give a directory": [*fit, "--out", str(pairs)],
        f"--out {pairs}/x cannot be made: {pairs} is a file; give a directory": [*fit, "--out", f"{pairs}/x"],
        f"--out {full} is not empty and holds no run to resume": [*fit, "--out", str(full)],
        "few.jsonl does not exist; check the path": [*fit, "--dev", "few.jsonl", "--out", "x"],
        "few does not exist; check the path, or write hub:ID": ["eval", "--model", model, "--pairs", "few"],
        "model directory ../none does not exist": ["eval", "--model", "../none", "--pairs", str(pairs)],
        "some/one is not a local directory and not in": ["fit", *fit[1:4], "some/one", "--out", "x"],
        "some/two is not a local": ["eval", "--model", "some/two", "--pairs", str(pairs)],
        "some/six is not a local": ["encode", "--model", "some/six", "--texts", str(pairs), "--out", "x.npy"],
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(list(cases.values()))],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.getcwd(), "HF_HUB_OFFLINE": "1"},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for message, (code, told, heavy) in zip(cases, lines, strict=True):
        assert (code, told.count("\n"), heavy) == (1, 1, False), told
        assert told.startswith("angle-train: error: ")
        assert message in told
    assert not (tmp_path / "x").exists()
