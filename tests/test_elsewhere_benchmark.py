"""`benchmarks/training/elsewhere.py`: that what it reads of public data is what is there."""

import sys
import zipfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "benchmarks" / "training")]

import elsewhere  # noqa: E402

from angle_train.data.search_set import load_searches  # noqa: E402


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def table(path, rows):
    """A .docx with one table."""
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    lines = ("".join(cell.format(text[:1], text[1:]) for text in row) for row in rows)
    body = "".join(f"<w:tr>{line}</w:tr>" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("word/document.xml", f"<w:document {names}><w:tbl>{body}</w:tbl></w:document>")


def test_pairs_and_their_labels(tmp_path):
    folder = tmp_path / "biosses" / "BIOSSES-Dataset"
    table(
        folder / "Annotation-Pairs.docx", [("", "Sentence 1", "Sentence 2"), ("1 ", "A gene.", "The gene.")]
    )
    table(folder / "Annotator-Scores.docx", [("No", "A", "B"), ("1", "4", "3")])
    assert [*elsewhere.biomedical(tmp_path)] == [elsewhere.pair("A gene.", "The gene.", 3.5)]
    written(tmp_path / "medical-question-pair-dataset" / "mqp.csv", '1,"Is it, so?",Is it?,1\n')
    assert [*elsewhere.patients(tmp_path)] == [elsewhere.pair("Is it, so?", "Is it?", 1.0)]
    written(
        tmp_path / "automatic-short-answer-grading" / "data" / "Data.csv",
        "number,Questions,Answers,Texts,Score\n1.1,Why?,So., Just so.<br>So.,3.5\n1.2,Why?,So.,<br>,0\n",
    )
    assert [*elsewhere.student_answers(tmp_path)] == [elsewhere.pair("So.", "Just so. So.", 3.5)]
    written(
        tmp_path / "ditto" / "data" / "er_magellan" / "Shop" / "test.txt",
        "COL title VAL a disk COL price VAL 1 \tCOL title VAL  COL price VAL 2 \t0\n"
        "COL name VAL a disk COL price VAL 1 \tCOL name VAL the disk COL price VAL  \t1\n",
    )
    assert [*elsewhere.offers(tmp_path, "Shop")] == [elsewhere.pair("a disk", "the disk", 1.0)]
    written(
        tmp_path / "HESML" / "HESML_Library" / "UMLS_Datasets" / "UMNSRS" / "UMNSRS_similarity.csv",
        '"Mean","Stdev","Term1","Term2","CUI1","CUI2"\n400,17.8,"Cold","Flu","C1","C2"\n',
    )
    assert [*elsewhere.medical_terms(tmp_path)] == [elsewhere.pair("Cold", "Flu", 0.25)]


def test_queries_find_what_is_relevant_to_them_by_their_place(tmp_path, monkeypatch):
    monkeypatch.setattr(elsewhere, "OUT", tmp_path / "out")
    folder = tmp_path / "Apache-Lucene-Cranfield" / "cran"
    written(folder / "cran.all.1400", ".I 1\n.T\na title\n.W\na title .\nflow\n.I 2\n.W\nheat\n")
    written(folder / "cran.qry", ".I 001\n.W\nwhat flows\nwhere\n.I 004\n.W\nwhat heats\n")
    written(folder / "cranqrel", "1 1 2\n1 2 -1\n2 2 4 \n")
    (found,) = load_searches([str(elsewhere.cranfield(tmp_path))])
    assert [*found.queries] == ["what flows where", "what heats"]
    places = {found.ids[place]: text for place, text in enumerate(found.texts)}
    assert places == {"1": "a title . flow", "2": "heat"}
    assert [{found.ids[place] for place in grades} for grades in found.grades] == [{"1"}, {"2"}]


def test_records_without_a_letter_are_text(tmp_path, monkeypatch):
    monkeypatch.setattr(elsewhere, "OUT", tmp_path / "out")
    folder = tmp_path / "SearchEngine"
    written(folder / "CISI.ALL", ".I 1\nA catalogue\nof books.\n.I 2\nAn index.\n")
    written(folder / "CISI_dev.QRY", ".I 3\n.W\nwhich books\n.I 5\n.T\na title\n.W\nwhich index\n")
    written(folder / "CISI_dev.REL", "5\t2\t0\t0.000000\n")
    (found,) = load_searches([str(elsewhere.cisi(tmp_path))])
    assert [*found.queries] == ["which index"]  # nothing is known of the other query
    assert {*found.texts} == {"A catalogue of books.", "An index."}
    assert [{found.texts[place] for place in grades} for grades in found.grades] == [{"An index."}]


def test_what_chose_nothing_is_measured_only_if_asked_for(tmp_path, monkeypatch):
    """Looked at with every model, a set would choose after all."""
    measured = []
    monkeypatch.setattr(elsewhere, "OUT", tmp_path)
    monkeypatch.setattr(elsewhere, "evaluate", lambda model, **given: measured.append(given))
    monkeypatch.setattr(elsewhere, "PAIRS", dict.fromkeys(elsewhere.PAIRS, lambda clones: iter(())))
    monkeypatch.setattr(elsewhere, "SEARCHES", {name: lambda clones: tmp_path for name in elsewhere.SEARCHES})
    monkeypatch.setattr(sys, "argv", ["elsewhere.py", "clones", "--model", "m"])
    elsewhere.main()
    pairs, search = measured
    names = ["biomedical", "patients", "student-answers", "offers", "offers-by-name"]
    assert [Path(file).stem for file in pairs["pairs"]] == names
    assert "search" in search
    monkeypatch.setattr(sys, "argv", ["elsewhere.py", "clones", "--model", "m", "--only", "medical-terms"])
    elsewhere.main()
    assert [Path(file).stem for file in measured[2]["pairs"]] == ["medical-terms"]
