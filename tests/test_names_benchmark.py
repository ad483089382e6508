"""`benchmarks/training/names.py`: texts with made-up names, to be kept."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "benchmarks" / "training")]

import names  # noqa: E402

from angle_data.jsonl import read_jsonl  # noqa: E402

TEXTS = [
    "The printer in the hall is broken again.",
    "Again no page comes out of the machine in the hall.",
    "The printer in the office is broken again.",
    "Who may use the printer after seven?",
]


def test_the_file_is_what_the_script_makes_of_the_others():
    assert [*names.rows()] == [row for _, row in read_jsonl(names.OUT)]


def test_a_word_has_the_same_name_in_all_texts_of_its_group():
    changed = names.with_names("g9-001", TEXTS)
    (name,) = {text.split()[1] for text in (changed[0], changed[2])}
    assert name != "printer"
    assert name in changed[3].split()
    assert all(word not in text for text in changed for word in ("printer", "hall"))
    assert [text.count("again") for text in changed] == [1, 0, 1, 0]  # a common word stays
    assert names.with_names("g9-001", TEXTS) == changed != names.with_names("g9-002", TEXTS)


def test_texts_in_which_nothing_changes_are_left_out(tmp_path):
    rows = '{"id": "a-1", "text": "It is so."}\n{"id": "a-2", "text": "Printers print."}\n'
    (tmp_path / "texts.jsonl").write_text(rows, encoding="utf-8")
    assert [row["id"] for row in names.rows([tmp_path / "texts.jsonl"])] == ["a-2n"]
