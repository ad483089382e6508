"""What a model gains or loses on public sets of other kinds of text, beside MiniLM.

    python benchmarks/training/elsewhere.py CLONES --model runs/cloud-ops/model
    python benchmarks/training/elsewhere.py CLONES --model runs/seed-1 --only patients search
    … --has 0 --shares 0 0.1 0.2    # pairs alone, and the demo's dev pairs, with so much of MiniLM mixed in

CLONES is a folder with clones of public repositories: `biosses` (its archive BIOSSES-Dataset.rar unpacked
there, as `cmake -E tar xf` does), `medical-question-pair-dataset`, `automatic-short-answer-grading` (of
ameyaranadee), `ditto`, `Apache-Lucene-Cranfield`, `HESML`, and `SearchEngine` (of xTinox). Nothing of them
is in this repository.

biomedical        BIOSSES: 100 pairs of sentences, mean of five annotators
patients          pairs of patients' questions, rewritten and labelled by doctors
student-answers   answers of students beside the teacher's, graded 0 to 5 (Mohler)
offers            Amazon-Google, test part: titles of offers, the same product or not
offers-by-name    Abt-Buy, test part: names of offers
search            Cranfield: abstracts that are relevant to queries, nDCG@10
electronics       Walmart-Amazon, test part: titles of offers
medical-terms     UMNSRS: 566 pairs of terms, their similarity judged by resident doctors
library           a part of CISI: abstracts of information science, 18 queries, nDCG@10

The first five chose among trials of texts to keep, and with `search` whether these come with the toolkit
(../log/names-kept.md). The last three chose nothing and are measured only where --only names them.
"""

from __future__ import annotations

import csv
import re
import statistics
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from common import RESULTS, minilm, options  # noqa: E402
from no_harm import show_shares  # noqa: E402

from angle_data.jsonl import write_jsonl, write_text  # noqa: E402
from angle_train import evaluate  # noqa: E402

OUT = RESULTS / "elsewhere"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_OFFER = re.compile(r"COL (?:title|name) VAL (.*?) COL ")
_RELEVANT = {"1", "2", "3", "4"}  # copies of Cranfield differ in which end is the best, so all count alike


def pair(one: str, other: str, score: float) -> dict[str, Any]:
    """Return a labelled pair as `eval` reads it."""
    return {"text1": one, "text2": other, "score": score}


def cells(document: Path) -> list[list[str]]:
    """Return the rows of the only table in a .docx."""
    root = ElementTree.fromstring(zipfile.ZipFile(document).read("word/document.xml"))
    (table,) = root.iter(f"{_WORD}tbl")
    return [
        ["".join(run.text or "" for run in cell.iter(f"{_WORD}t")).strip() for cell in row.iter(f"{_WORD}tc")]
        for row in table.iter(f"{_WORD}tr")
    ]


def biomedical(clones: Path) -> Iterator[dict[str, Any]]:
    """Yield the pairs of BIOSSES."""
    folder = clones / "biosses" / "BIOSSES-Dataset"
    texts, grades = cells(folder / "Annotation-Pairs.docx"), cells(folder / "Annotator-Scores.docx")
    for (_, one, other), (_, *scores) in zip(texts[1:], grades[1:], strict=True):
        yield pair(one, other, statistics.mean(map(float, scores)))


def patients(clones: Path) -> Iterator[dict[str, Any]]:
    """Yield the pairs of patients' questions."""
    with open(clones / "medical-question-pair-dataset" / "mqp.csv", encoding="utf-8", newline="") as stream:
        for _, one, other, label in csv.reader(stream):
            yield pair(one, other, float(label))


def student_answers(clones: Path) -> Iterator[dict[str, Any]]:
    """Yield the teacher's answer and a student's, with the grade of the latter."""
    file = clones / "automatic-short-answer-grading" / "data" / "Data.csv"
    with open(file, encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            wanted, given = (re.sub(r"<[^>]+>", " ", row[name]).strip() for name in ("Answers", "Texts"))
            if wanted and given:
                yield pair(wanted, given, float(row["Score"]))


def offers(clones: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yield the titles or names of two shops' offers, and whether the product is the same."""
    file = clones / "ditto" / "data" / "er_magellan" / name / "test.txt"
    for line in file.read_text(encoding="utf-8").splitlines():
        *both, label = line.split("\t")
        one, other = (found.group(1).strip() if (found := _OFFER.search(text)) else "" for text in both)
        if one and other:
            yield pair(one, other, float(label))


def medical_terms(clones: Path) -> Iterator[dict[str, Any]]:
    """Yield the pairs of medical terms with their mean similarity, of 0 to 1,600 as 0 to 1."""
    file = clones / "HESML" / "HESML_Library" / "UMLS_Datasets" / "UMNSRS" / "UMNSRS_similarity.csv"
    with open(file, encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            yield pair(row["Term1"], row["Term2"], float(row["Mean"]) / 1600)


def fields(file: Path) -> list[dict[str, str]]:
    """Return the records of a collection by the letter of each field; `I` is the id, `W` the text."""
    records = list[dict[str, str]]()
    name = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\.([A-Z])(?: (\d+))?", line.strip()):
            name = found.group(1)
            if name == "I":
                records.append({"I": str(int(found.group(2)))})
                name = "W"
        else:
            records[-1][name] = f"{records[-1].get(name, '')} {line.strip()}".strip()
    return records


def write_search(
    out: Path,
    documents: Sequence[dict[str, str]],
    queries: Mapping[str, str],
    relevant: Sequence[tuple[str, str]],
) -> Path:
    """Write a search in BEIR's layout; return its folder.

    Args:
        out: The folder.
        documents: Records of the documents.
        queries: By number; documents have numbers too, so that the queries get other ids.
        relevant: Numbers of a query and of a document that is relevant to it.
    """
    write_jsonl(out / "corpus.jsonl", ({"_id": row["I"], "text": row.get("W", "")} for row in documents))
    write_jsonl(
        out / "queries.jsonl", ({"_id": f"query-{number}", "text": text} for number, text in queries.items())
    )
    lines = [f"query-{query}\t{document}\t1" for query, document in relevant]
    write_text(out / "qrels" / "test.tsv", "\n".join(["query-id\tcorpus-id\tscore", *lines, ""]))
    return out


def cranfield(clones: Path) -> Path:
    """Write Cranfield; its judgements number the queries by their place."""
    source = clones / "Apache-Lucene-Cranfield" / "cran"
    queries = {str(n): row["W"] for n, row in enumerate(fields(source / "cran.qry"), start=1)}
    lines = [line.split() for line in (source / "cranqrel").read_text(encoding="utf-8").splitlines()]
    relevant = [(query, document) for query, document, code, *_ in lines if code in _RELEVANT]
    return write_search(OUT / "search", fields(source / "cran.all.1400"), queries, relevant)


def cisi(clones: Path) -> Path:
    """Write the part of CISI that is there: 18 of its queries have judgements."""
    source = clones / "SearchEngine"
    lines = [line.split() for line in (source / "CISI_dev.REL").read_text(encoding="utf-8").splitlines()]
    relevant = [(found[0], found[1]) for found in lines if found]
    queries = {row["I"]: row["W"] for row in fields(source / "CISI_dev.QRY")}
    return write_search(OUT / "library", fields(source / "CISI.ALL"), queries, relevant)


PAIRS: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
    "biomedical": biomedical,
    "patients": patients,
    "student-answers": student_answers,
    "offers": partial(offers, name="Structured/Amazon-Google"),
    "offers-by-name": partial(offers, name="Textual/Abt-Buy"),
    "electronics": partial(offers, name="Structured/Walmart-Amazon"),
    "medical-terms": medical_terms,
}
SEARCHES = {"search": cranfield, "library": cisi}
FURTHER = ("electronics", "medical-terms", "library")
"""Not measured unless asked for: they chose nothing, and are for what was chosen."""


def main() -> None:
    """Print the figures of a model and of MiniLM on every set, with the difference."""
    parser = options(__doc__)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--model", required=True)
    names = [*PAIRS, *SEARCHES]
    usual = [name for name in names if name not in FURTHER]
    told = f"default: all but {', '.join(FURTHER)}"
    parser.add_argument("--only", nargs="+", choices=names, default=usual, help=told)
    parser.add_argument("--has", type=float, default=0.0, help="share of MiniLM that --model has already")
    parser.add_argument("--shares", type=float, nargs="+", help="of MiniLM in all, mixed into --model")
    given = parser.parse_args()
    files = []
    for name in given.only:
        if name in PAIRS:
            files.append(str(OUT / f"{name}.jsonl"))
            write_jsonl(Path(files[-1]), PAIRS[name](given.clones))
    if given.shares:
        show_shares(given.model, given.has, given.shares, "dev", files)
        return
    if files:
        print(evaluate(given.model, pairs=files, baseline=str(minilm())), flush=True)
    for name in given.only:
        if name in SEARCHES:
            folder = SEARCHES[name](given.clones)
            print(evaluate(given.model, search=str(folder), baseline=str(minilm())), flush=True)


if __name__ == "__main__":
    main()
