"""One file means the same to every command of both programs: the same rows, the same errors."""

import pytest

from angle_data.ensembling.given import read_given
from angle_data.errors import InputError
from angle_data.labelling.texts import PairFile, TextFile
from angle_data.look.read import items_of
from angle_train.data.keep import load_to_keep
from angle_train.data.pairs import load_pairs
from angle_train.encode import read_ids_and_texts

TEXTS = [
    lambda path: [text.text for text in TextFile(path)],
    lambda path: [text for _, text in read_ids_and_texts(path)],
]
PAIRS = [
    lambda path: len(list(PairFile(path))),
    lambda path: len(read_given([path])),
    lambda path: len(load_pairs(str(path))),
    lambda path: len(load_to_keep([str(path)], False, [], []).texts) / 2,
    lambda path: len(list(items_of([path]))),
]


@pytest.mark.parametrize("read", TEXTS)
def test_texts_of_a_tsv_are_the_same_for_all(tmp_path, read):
    (tmp_path / "t.tsv").write_text('id\ttext\n1\t"One\n2\tTwo "2".\n3\t"Three"\n')
    assert read(tmp_path / "t.tsv") == ['"One', 'Two "2".', '"Three"']


@pytest.mark.parametrize("read", PAIRS)
@pytest.mark.parametrize("columns", ["question1\tquestion2", "sentence_A\tsentence_B", "text1\ttext2"])
def test_pairs_have_the_same_names_of_columns_for_all(tmp_path, read, columns):
    (tmp_path / "t.tsv").write_text(f'{columns}\tscore\n"a\tb\t0,5\nc\t"d\t1\ne\tf\t0\ng\th\t0\n')
    assert read(tmp_path / "t.tsv") == 4


@pytest.mark.parametrize("read", [*TEXTS, *PAIRS[:-1]])
def test_a_nul_is_the_same_error_for_all(tmp_path, read):
    head, row = ("text", "a\0b") if read in TEXTS else ("text1\ttext2\tscore", "a\0b\tc\t1")
    other = "d" if read in TEXTS else "d\te\t0"
    (tmp_path / "t.tsv").write_text(f"{head}\n{other}\n{row}\n")
    with pytest.raises(InputError, match=r"t.tsv:3: field 'text1?' holds NUL characters, .*; convert"):
        read(tmp_path / "t.tsv")
