"""`benchmarks/domains`: its figures, and that replies are put together with the texts that they answer."""

import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from angle_data.jsonl import write_jsonl
from angle_train.data.pairs import load_pairs

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks" / "domains")]

import domains  # noqa: E402
import llm_supervised  # noqa: E402

WRITTEN_FOR = [*domains.FOLDERS, "bug-titles"]
"""The domains for whose texts a language model wrote, and whose pairs it graded."""


def stored(folder, text, sentence="a dog <Text>"):
    """A file of one reply, to the first row of a training split."""
    row = {"row": 0, "sha256": hashlib.sha256(text.encode()).hexdigest()[:12], "reply": {"5": sentence}}
    write_jsonl(folder / "tiny.jsonl", [row])
    write_jsonl(folder / "tiny-graded.jsonl", [{"one": "0:1", "other": "0:2", "kind": "near", "score": 4.5}])


def test_replies_belong_to_the_texts_that_they_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(domains, "HERE", tmp_path)
    stored(tmp_path, "A dog runs")
    train = [{"text1": "A dog runs", "text2": "A dog sleeps"}]
    texts, replies, graded = domains.written("tiny", train, tmp_path / "home")
    assert domains.rows_of(texts) == [{"id": "train-0", "text": "A dog runs"}]
    (row,) = domains.rows_of(replies)
    assert json.loads(row["reply"]) == {"5": "a dog A dog runs"}
    (pair,) = domains.rows_of(graded)
    assert (pair["text1"], pair["text2"], pair["score"]) == ("A dog runs", "A dog sleeps", 4.5)
    with pytest.raises(SystemExit, match="tiny, row 0: not the text that the reply answers"):
        domains.written("tiny", [{"text1": "Another dog runs"}], tmp_path / "home")


@pytest.mark.parametrize("name", domains.FOLDERS)
def test_every_reply_has_five_degrees_and_no_text_comes_twice(name):
    rows = domains.rows_of(domains.HERE / f"{name}.jsonl")
    assert len(rows) >= 50
    assert len({row["row"] for row in rows}) == len(rows)
    assert all(list(row["reply"]) == ["5", "4", "3", "2", "1"] for row in rows)
    assert all(len(set(row["reply"].values())) == 5 for row in rows)


@pytest.mark.parametrize("name", WRITTEN_FOR)
def test_every_text_has_three_synonyms_and_three_antonyms_and_they_differ(name):
    rows = domains.rows_of(domains.HERE / f"{name}-polarity.jsonl")
    if name == "bug-titles":
        texts = [
            row["id"] for row in domains.rows_of(ROOT / "benchmarks" / "bug-titles" / "annotator-h.jsonl")
        ]
    else:
        texts = [f"train-{row['row']}" for row in domains.rows_of(domains.HERE / f"{name}.jsonl")]
    assert [row["id"] for row in rows] == texts
    assert all([len(row["synonym"]), len(row["antonym"])] == [3, 3] for row in rows)
    assert all(len({said.lower() for said in row["synonym"] + row["antonym"]}) == 6 for row in rows)


def test_synonyms_and_antonyms_become_pairs_with_the_texts_that_they_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(domains, "HERE", tmp_path)
    monkeypatch.setattr(domains, "RESULTS", tmp_path / "runs")
    monkeypatch.setattr(llm_supervised, "RESULTS", tmp_path / "runs")
    said = {"train-0": "A dog runs", "train-1": "A man sleeps"}
    texts = tmp_path / "texts.jsonl"
    write_jsonl(texts, ({"id": name, "text": text} for name, text in said.items()))
    rows = [
        {
            "id": name,
            "sha256": hashlib.sha256(text.encode()).hexdigest()[:12],
            "synonym": [f"truly <text> {number}" for number in range(3)],
            "antonym": [f"{text.split()[1]} number {number} stands still" for number in range(3)],
        }
        for name, text in said.items()
    ]
    write_jsonl(tmp_path / "tiny-polarity.jsonl", rows)
    task = SimpleNamespace(name="domains-tiny", texts=texts, purpose="topics", replies=tmp_path)
    domain = domains.Domain(task, tmp_path / "tiny" / "human.jsonl")
    pairs = load_pairs(str(domains.synonyms_and_antonyms(domain)))
    score = dict(zip(zip(pairs.text1, pairs.text2, strict=True), pairs.score, strict=True))
    assert score["A dog runs", "truly a dog runs 2"] > score["A dog runs", "dog number 1 stands still"]
    assert sum("truly" in other or "stands still" in other for _, other in score) == 12
    write_jsonl(texts, [{"id": name, "text": "Another text"} for name in said])
    with pytest.raises(SystemExit, match="tiny, train-0: not the text that the reply answers"):
        domains.synonyms_and_antonyms(domain)


def test_whole_reports_are_the_pairs_of_their_titles_with_the_grades_of_these(tmp_path, monkeypatch):
    monkeypatch.setattr(domains, "HERE", tmp_path)
    monkeypatch.setattr(domains, "RESULTS", tmp_path / "runs")
    monkeypatch.setattr(
        domains, "bug_titles", lambda: domains.Task("titles", "topics", 3, *[tmp_path] * 4, True, (), ())
    )

    def pairs(split):
        return [
            {
                "text1": f"{split} {number} fails \nit " + "fails " * 500,
                "text2": f"{split} {number} crashes\nit crashed",
                "label": number % 2,
                "source": "tracker",
                "id1": str(number),
                "id2": "x",
            }
            for number in range(30)
        ]

    monkeypatch.setattr(domains, "bug_rows", pairs)
    titles = "train 7 fails\0train 7 crashes"
    graded = {"row": 7, "sha256": hashlib.sha256(titles.encode()).hexdigest()[:12], "score": 2.0}
    write_jsonl(tmp_path / "bug-titles-judged.jsonl", [graded])
    domain = domains.reports()
    human = domains.rows_of(domain.human)
    assert [row["label"] for row in human] == [row["label"] for row in pairs("train")]
    assert {len(row["text1"]) for row in human} == {domains.CHARACTERS}
    (judged,) = domains.rows_of(domain.judged(None))
    assert judged == {"text1": human[7]["text1"], "text2": "train 7 crashes\nit crashed", "score": 0.4}
    rows = {row["text2"]: row for row in pairs("validation")}
    for part, (file,) in (("dev", domain.task.dev), ("test", domain.task.test)):
        found = domains.rows_of(file)
        assert {len(row["text1"]) for row in found} == {domains.CHARACTERS}
        assert all(llm_supervised.bug_split(rows[row["text2"]]) == part for row in found)
    assert sum(len(domains.rows_of(file)) for file in (*domain.task.dev, *domain.task.test)) == 30
    write_jsonl(tmp_path / "bug-titles-judged.jsonl", [graded | {"row": 8}])
    with pytest.raises(SystemExit, match="bug-titles, row 8: not the pair that was graded"):
        domains.reports()


def test_annotators_are_asked_as_in_the_paper_unless_told_otherwise(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(llm_supervised, "label", asked.append)
    task = SimpleNamespace(name="tiny", texts=tmp_path / "texts.jsonl", replies=tmp_path)
    llm_supervised.candidates(task, ("a",), "synonym")
    llm_supervised.candidates(task, ("a",), prompts="structured", size=3)
    assert [(one.prompts, one.polarity, one.size) for one in asked] == [
        ("paper", "synonym", None),
        ("structured", None, 3),
    ]


ROWS = {
    "degrees": [
        {"tuned": 66.0, "saved": 66.0, "dev": 70.0, "lost": 0.4},
        {"tuned": 61.0, "saved": 62.0, "dev": 71.0, "lost": 1.2},
    ],
    "judged": [{"tuned": 65.0, "saved": 62.0, "dev": 70.0, "lost": 0.1}],
    "judged-all": [{"tuned": 69.0, "saved": 69.0, "dev": 75.0, "lost": 1.1}],  # loses too much
    "human": [{"tuned": 70.0, "saved": 70.0, "dev": 80.0, "lost": 1.5}],
}


def test_a_share_is_of_the_gain_of_all_human_pairs_of_tuned_and_of_saved_weights():
    table = domains.shown("tiny", 62.0, ROWS)
    assert "| degrees | 70.5 ± 0.71 | 63.5 ± 3.54 | +1.5 | 19 % | 64.0 ± 2.83 | +2.0 | 25 % | 0.8 |" in table
    assert "| human | 80.0 | 70.0 | +8.0 | 100 % | 70.0 | +8.0 | 100 % | 1.5 |" in table
    assert "| 63.5 ± 3.54 | +1.5 | - |" in domains.shown("tiny", 62.0, {"degrees": ROWS["degrees"]})


def test_dev_pairs_choose_the_row_of_the_language_model_and_not_test():
    assert (
        "Best on dev of what a language model gave: degrees, 19 % of the human gain, 25 %"
        in domains.shown("tiny", 62.0, ROWS)
    )


def test_a_row_without_dev_pairs_has_no_figure_there():
    assert "| simcse |  | 60.0 |" in domains.shown("tiny", 62.0, {"simcse": [{"tuned": 60.0, "saved": 60.0}]})


def test_judged_pairs_are_those_of_the_training_split_with_scores_from_0_to_1(tmp_path, monkeypatch):
    monkeypatch.setattr(domains, "HERE", tmp_path)
    sha = hashlib.sha256(b"A dog runs\0A dog sleeps").hexdigest()[:12]
    for name, wanted in (("tiny", 0.8), ("sick", 0.75)):  # that of sick begins at 1
        write_jsonl(tmp_path / f"{name}-judged.jsonl", [{"row": 1, "sha256": sha, "score": 4.0}])
        domains.write_judged(name, [("a", "b"), ("A dog runs", "A dog sleeps")], tmp_path)
        assert domains.rows_of(tmp_path / "judged.jsonl") == [
            {"text1": "A dog runs", "text2": "A dog sleeps", "score": wanted}
        ]
        with pytest.raises(SystemExit, match=f"{name}, row 1: not the pair that was graded"):
            domains.write_judged(name, [("a", "b"), ("c", "d")], tmp_path)


JUDGED = {"sick": 4500, "mrpc": 3701, "questions": 1958, "bug-titles": 4686}


@pytest.mark.parametrize("name", WRITTEN_FOR)
def test_every_judged_pair_has_a_grade_of_the_scale_and_none_comes_twice(name):
    rows = domains.rows_of(domains.HERE / f"{name}-judged.jsonl")
    assert len(rows) == JUDGED[name]
    assert len({row["row"] for row in rows}) == len(rows)
    assert {row["score"] for row in rows} <= {n / 2 for n in range(2 if name == "sick" else 0, 11)}


def test_a_row_takes_the_first_of_the_judged_pairs_or_all(tmp_path):
    domain = domains.Domain(None, tmp_path / "human.jsonl")
    write_jsonl(tmp_path / "judged.jsonl", ({"text1": str(n)} for n in range(30)))
    assert [row["text1"] for row in domains.rows_of(domain.judged(2))] == ["0", "1"]
    assert len(domains.rows_of(domain.judged(None))) == 30


def test_grades_as_labels_say_yes_or_no_and_leave_out_perhaps(tmp_path, monkeypatch):
    asked = []

    def fit_pairs(task, recipe, data, out, seed, backbone, **options):
        asked.append(load_pairs(str(data), **options))
        raise InterruptedError

    monkeypatch.setattr(domains, "fit_pairs", fit_pairs)
    domain = domains.Domain(SimpleNamespace(purpose="topics"), tmp_path / "human.jsonl")
    grades = [0.0, 2.5, 3.0, 3.5, 5.0]
    rows = ({"text1": str(grade), "text2": "b", "score": grade / 5} for grade in grades)
    write_jsonl(tmp_path / "judged.jsonl", rows)
    for row in ("judged-yes-no", "judged-all-default"):
        with pytest.raises(InterruptedError):
            domains.run(tmp_path, domain, row, 1, {})
    labels, scores = asked
    assert dict(zip(labels.text1, labels.score, strict=True)) == {"0.0": 0, "2.5": 0, "3.5": 1, "5.0": 1}
    assert [*scores.score] == [grade / 5 for grade in grades]


def test_each_row_has_its_own_pairs_and_recipe(tmp_path, monkeypatch):
    names = ["degrees", "degrees-mined"]
    monkeypatch.setattr(domains, "data_sets", lambda _: {name: tmp_path / f"{name}.jsonl" for name in names})
    domain = domains.Domain(SimpleNamespace(purpose="topics"), tmp_path / "human.jsonl")
    monkeypatch.setattr(domains, "synonyms_and_antonyms", lambda _: tmp_path / "polarity.jsonl")
    write_jsonl(domain.human, ({"text1": str(n)} for n in range(300)))
    rows = ({"text1": str(n), "text2": "b", "score": n % 11 / 10} for n in range(1100))
    write_jsonl(tmp_path / "judged.jsonl", rows)
    asked = [*domains.LLM_ROWS, *domains.TAUGHT_ROWS, "human-50", "human-200", "human"]
    data = {row: domains.data_and_recipe(domain, row, 1) for row in asked}
    own = {row for row in data if data[row][1] == "default"}
    judged = {"judged-all-default", "judged-all-guarded", "judged-yes-no", "teacher-judged"}
    assert own == {*judged, "teacher", "human-50", "human-200", "human"}
    assert {recipe for _, recipe in data.values()} == {"default", "topics"}
    of = {row: [path.name for path in (files if isinstance(files, tuple) else [files] if files else [])]
          for row, (files, _) in data.items()}  # fmt: skip
    assert of == {
        "polarity": ["polarity.jsonl"],
        "degrees": ["degrees.jsonl"],
        "graded": ["degrees-mined.jsonl"],
        "judged": ["judged-1000.jsonl"],
        "judged-all": ["judged.jsonl"],
        "judged-all-default": ["judged.jsonl"],
        "judged-all-guarded": ["judged.jsonl"],
        "judged-yes-no": ["judged.jsonl"],
        "judged-degrees": ["judged-1000.jsonl", "degrees.jsonl"],
        "teacher": [],
        "teacher-degrees": ["degrees.jsonl"],
        "teacher-judged": ["judged.jsonl"],
        "human-50": ["human-50-1.jsonl"],
        "human-200": ["human-200-1.jsonl"],
        "human": ["human.jsonl"],
    }
    assert len(domains.rows_of(tmp_path / "judged-1000.jsonl")) == 1000


@pytest.mark.parametrize(("row", "most"), [("judged-all-default", 1.0), ("judged-all-guarded", 0.5)])
def test_only_the_guarded_row_asks_for_a_smaller_loss(tmp_path, monkeypatch, row, most):
    asked = []

    def fit_pairs(task, recipe, *_, **options):
        asked.append(recipe.training.guard_loss)
        raise InterruptedError

    monkeypatch.setattr(domains, "fit_pairs", fit_pairs)
    write_jsonl(tmp_path / "judged.jsonl", [{"text1": "a", "text2": "b", "score": 0.5}])
    with pytest.raises(InterruptedError):
        domains.run(
            tmp_path, domains.Domain(SimpleNamespace(purpose="topics"), tmp_path / "h.jsonl"), row, 1, {}
        )
    assert asked == [most]


def test_few_pairs_are_others_for_each_seed(tmp_path):
    write_jsonl(tmp_path / "human.jsonl", ({"text1": str(n)} for n in range(100)))
    human = tmp_path / "human.jsonl"
    one, same, other = (domains.rows_of(domains.few(human, 10, seed)) for seed in (1, 1, 2))
    assert one == same != other
    assert len(one) == 10


def test_what_is_measured_is_the_model_and_not_the_overlap_of_words(tmp_path, tiny_model_dir):
    words = ["red", "green", "blue", "grey", "pink"]
    rows = [
        {
            "text1": f"a {words[i % 5]} dog runs",
            "text2": f"the {words[i % 3]} cat {words[i % 4]}",
            "score": i % 6 / 5,
        }
        for i in range(30)
    ]
    test = tmp_path / "test.jsonl"
    write_jsonl(test, rows)
    task = SimpleNamespace(test=(test,))
    model = SentenceTransformer(str(tiny_model_dir), device="cpu")
    one, other = (
        model.encode([row[f"text{end}"] for row in rows], normalize_embeddings=True) for end in (1, 2)
    )
    gold = [row["score"] for row in rows]
    found = domains.measured(tiny_model_dir, SimpleNamespace(task=task))
    assert found == pytest.approx(100 * spearmanr((one * other).sum(axis=1), gold).statistic, abs=0.05)


def test_a_row_that_a_domain_has_not_is_told(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(domains, "DOMAINS", dict.fromkeys(domains.DOMAINS, lambda: None))
    monkeypatch.setattr(domains, "measured", lambda *_: 60.0)
    monkeypatch.setattr(domains, "run", lambda home, domain, row, *_: asked.append(row) or ROWS["human"][0])
    monkeypatch.setattr(domains, "save_results", lambda *_: None)
    monkeypatch.setattr(
        sys, "argv", ["domains.py", "bug-reports", "--rows", "degrees", "human", "--seeds", "1"]
    )
    domains.main()
    assert asked == ["human"]
    assert "bug-reports has no row degrees" in capsys.readouterr().err
