"""The numbers of the report and the card."""

import shutil

import pytest
from fake_gis_store import make_comment, make_issue, write_store

from angle_data.errors import InputError
from angle_data.gis.build.build import BuildConfig, build_gis
from angle_data.gis.build.card import render_gis_card
from angle_data.gis.build.positives import DROPPED
from angle_data.gis.build.report import ESTIMATE, USUAL, Measures, token_counter


def make_row(text1, text2, kind="duplicate"):
    """A row of a data set, as far as it is measured."""
    row = dict.fromkeys(("url1", "url2", "evidence", "evidence_url"), "")
    label = int(kind == "duplicate")
    return {**row, "text1": text1, "text2": text2, "label": label, "repo": "o/r", "kind": kind}


def test_lengths_and_their_shares():
    measures = Measures("words", lambda text: len(text.split()))
    for first, second in ((1, 2), (513, 3), (600, 700), (512, 1)):
        measures.add("train", make_row("a " * first, "b " * second))
    found = measures.summary()["tokens"]
    assert found["tokenizer"] == "words"
    assert found["train"]["texts"] == 8
    assert found["train"]["max"] == 700
    assert found["train"]["texts_over_512"] == 37.5
    assert found["train"]["pairs_with_a_text_over_512"] == 50.0


def test_how_well_the_overlap_of_words_tells_the_kinds_apart():
    """Of four comparisons with hard pairs two are won and one is a draw; rare words weigh more."""
    measures = Measures("words", len)
    rows = [
        ("rare1 the", "rare1 the", "duplicate"),
        ("the two1", "the two2", "duplicate"),
        ("the three1", "the three2", "hard"),
        ("rare4 the x4 z4", "rare4 the y4 v4", "hard"),
        ("one5 the", "two5 other", "random"),
    ]
    for one, other, kind in rows:
        measures.add("train", make_row(one, other, kind))
    assert measures.summary()["lexical"] == {
        "hard": {"rare": 0.625, "plain": 0.75},
        "random": {"rare": 1.0, "plain": 1.0},
    }


def test_overlap_of_ngrams():
    measures = Measures("words", len)
    for row in (("a b c d", "a b c e"), ("x y", "X Y"), ("a b", "c d", "random")):
        measures.add("train", make_row(*row))
    assert measures.summary()["overlap"] == {
        # (3/5 + 1) / 2, (2/4 + 1) / 2, and 1/3 for the pair that has three words, 0 for the one that has not
        "duplicates": {"1-gram": 80.0, "2-gram": 75.0, "3-gram": 16.7},
        "non-duplicates": {"1-gram": 0.0, "2-gram": 0.0, "3-gram": 0.0},
    }
    apart = Measures("words", len)
    apart.add("train", make_row("ab c", "a bc"))
    assert apart.summary()["overlap"]["duplicates"]["2-gram"] == 0.0
    assert measures.summary()["repositories"] == {"o/r": {"negatives": 1, "positives": 2}}


def test_the_estimate_of_tokens():
    name, count = token_counter("estimate")
    assert name == ESTIMATE
    assert list(map(count, ("", "word", "segmentation fault!", "日本"))) == [0, 1, 5, 1]


def test_a_tokenizer_of_a_file_or_of_the_hubs_cache(tmp_path, monkeypatch):
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(2)
    folder = tmp_path / "tiny-model"
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    for path in (folder, folder / "tokenizer.json"):
        name, counter = token_counter(str(path))
        assert (name, counter("a b c d")) == ("tiny-model", 4)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    assert token_counter(None)[0] == ESTIMATE, "nothing is fetched unasked"
    for wanted, kept in ((None, USUAL), ("some/model", "some/model")):
        cached = tmp_path / "cache" / f"models--{kept.replace('/', '--')}"
        (cached / "refs").mkdir(parents=True)
        (cached / "refs" / "main").write_text("a1")
        shutil.copytree(folder, cached / "snapshots" / "a1")
        name, counter = token_counter(wanted)
        assert (name, counter("a b c d")) == (kept, 4)
    with pytest.raises(InputError, match=r"--tokenizer no/model: no tokenizer that can be read"):
        token_counter("no/model")


def test_a_file_that_is_no_tokenizer(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="no tokenizer that can be read"):
        token_counter(str(tmp_path))
    with pytest.raises(InputError, match=r"no tokenizer\.json there"):
        token_counter(str(tmp_path / "missing.json"))


REPORT = {
    "options": {"max_pairs_per_cluster": 10, "split_by": "cluster", "since": None, "until": None,
                "strategy": "both", "ids_only": False, "command": "angle-data gis --seed 0"},
    "crawl": {"o/r": {"issues": 5_000, "comments": 7_000, "read": "complete 2024-02-03"},
              "o/half": {"issues": 9, "comments": 8, "read": "unfinished"}},
    "forms": {"lines": 2, "repositories": 1,
              "most": [{"repo": "o/r", "line": "i can send a fix", "issues": 1_300}]},
    "samples": {
        "hard": [{"url1": "https://x/o/r/issues/1", "url2": "https://x/o/r/issues/2", "evidence": "bm25:3",
                  "evidence_url": "", "excerpt1": "A [b] | c", "excerpt2": "d"}],
    },
    "left_out": {},
    "periods": {},
    "links": {
        "statements": 1_234,
        "accepted": 1_200,
        "tentative": {"guess": 4},
        "rejected": {"pull": 30},
        "by_evidence": {"event": 1_200},
    },
    "pairs": {"dropped": {"cluster_cap": 5}},
    "negatives": {"dropped": {}, "both_sides_in_positives_percent": 75.0},
    "splits": {"train": {"positives": 600, "negatives": 500, "pairs": 1_100, "issues": 900, "hard": 200}},
    "checks": {"shared_issues": 0},
    "repositories": {"o/r": {"positives": 600, "negatives": 500}},
    "tokens": {"tokenizer": "some", "train": {"texts": 2_200, "texts_over_512": 60.5}},
    "overlap": {"duplicates": {"1-gram": 26.0, "2-gram": 16.0, "3-gram": 13.0}},
    "lexical": {"hard": {"rare": 0.661, "plain": 0.6}, "random": {"rare": 0.882, "plain": 0.8}},
    "texts_cut": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "- 1K<n<10K",
        "| train | 600 | 500 | 1,100 | 0 | 200 | 0 | 900 |",
        "| train | 2200 | 60.5 |",
        "| train: positives + negatives | 600 + 500 | 9,457 + 9,108 |",
        "| train: texts over 512 | 60.5 | 61.03 |",
        "| overlap of duplicates: 1-, 2-, 3-grams | 26.0, 16.0, 13.0 | 26, 16, 13 |",
        "| o/r | 600 | 500 | 5,000 | 7,000 | complete 2024-02-03 |",
        "| o/half | 0 | 0 | 9 | 8 | unfinished |",
        "| hard | 0.661 | 0.6 |",
        "| `hard` | [#1](https://x/o/r/issues/1) A \\[b\\] \\| c | [#2](https://x/o/r/issues/2) d | bm25:3 |",
        "- `angle-data gis --seed 0`, from what was crawled.",
        "| `event` | 1,200 |",
        "| tentative | `guess` | a guess or a question | 4 |",
        "| rejected | `pull` | one of the ends is a pull request | 30 |",
        "In two splits at once: shared issues 0.",
        "![token lengths](figures/token-lengths.png)",
    ],
)
def test_lines_of_the_card(line):
    assert line in render_gis_card(REPORT, figures=["token-lengths.png"]).splitlines()


def test_the_card_says_whether_the_texts_are_there():
    whole, ids = (card(options={**REPORT["options"], "ids_only": only}) for only in (False, True))
    # A block that two data sets share makes `datasets` take the one for the other.
    assert "configs:" not in whole + ids
    assert "`text1`" in whole
    assert "The texts are not included." not in whole
    assert "`text1`" not in ids
    assert "The texts are not included." in ids


@pytest.mark.parametrize(
    ("who", "backing"),
    [
        ("owner", {"role": "OWNER"}),
        ("author of the duplicate", {"role": "NONE", "author": "reporter"}),
        ("labelled", {"role": "NONE", "labels": ("duplicate",)}),
        ("same original", {"role": "OWNER"}),
    ],
)
def test_the_card_names_everybody_whose_word_makes_label_1(tmp_path, who, backing):
    """Whatever is accepted as evidence stands in the sentence that says what label 1 means."""
    labels = backing.pop("labels", ())
    bodies = {n: " ".join(f"w{n}x{i}" for i in range(30)) for n in (1, 2, 3)}
    issues = [make_issue(n, body=bodies[n], labels=labels if n > 1 else ()) for n in bodies]
    comments = [make_comment(n, n, "Duplicate of #1", 9, **{"author": "joe", **backing}) for n in (2, 3)]
    write_store(tmp_path, issues=issues, comments=comments)
    summary = build_gis(BuildConfig(tmp_path, negatives=0, ratios=(1.0,)))
    assert summary.report["splits"]["train"]["positives"] == 3
    meaning = (summary.dataset / "README.md").read_text().partition("Label 1: ")[2].partition("Label 0")[0]
    assert who in " ".join(meaning.split())


def card(**changes):
    return render_gis_card({**REPORT, **changes})


def test_sections_without_content_are_left_out():
    links = {**REPORT["links"], "accepted": 139, "statements": 139, "tentative": {}, "rejected": {}}
    whole = card(links=links, pairs={"dropped": {"hub": 0}})
    assert "139 statements were found, 139 accepted." in whole
    assert "| reason |" not in whole
    assert "\nNothing.\n" in whole
    assert "](figures/" not in whole


def test_words_of_our_own_are_explained():
    found = {"closure": 3, "crosses_time_border": 2, "hub": 0}
    said = {"denial_pull": 4, "denial_repeated": 1, "no_partner": 2}
    whole = card(pairs={"dropped": found}, negatives={**REPORT["negatives"], "dropped": said})
    for name in ("closure", "crosses_time_border"):
        assert f"| pair | `{name}` | {DROPPED[name]} | {found[name]} |" in whole
    assert "`hub`" not in whole
    assert "| negative pair | `denial_pull` | one of the ends is a pull request | 4 |" in whole
    assert "| negative pair | `denial_repeated` | said before | 1 |" in whole
    assert "| negative pair | `no_partner` | no other issue was found | 2 |" in whole


def test_the_card_says_what_was_left_out_and_chosen():
    options = {**REPORT["options"], "since": "2020-01-01", "until": "2020-12-31", "strategy": "events"}
    whole = card(
        left_out={"a/b": "451 Blocked"},
        options=options,
        periods={"train": "2020-06-01T00:00:00Z", "test": None},
    )
    assert "| a/b | 451 Blocked |" in whole
    assert "issues opened since 2020-01-01 and until 2020-12-31; evidence: GitHub's own marks alone." in whole
    assert "opened in its period: train until 2020-06-01T00:00:00Z, then the rest." in whole
