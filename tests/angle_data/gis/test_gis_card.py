"""The numbers of the report and the card."""

import json
import shutil
from pathlib import Path

import pytest
from fake_gis_store import make_comment, make_issue, write_store

from angle_data.errors import InputError
from angle_data.gis.build.build import build_gis
from angle_data.gis.build.card import render_gis_card
from angle_data.gis.build.positives import DROPPED
from angle_data.gis.build.report import ESTIMATE, USUAL, Measures, token_counter
from angle_data.gis.crawl.selection import GisConfig


def make_row(text1, text2, kind="duplicate"):
    """A row of a data set, as far as it is measured."""
    row = dict.fromkeys(("url1", "url2", "evidence", "evidence_url"), "")
    label = int(kind == "duplicate")
    return {**row, "text1": text1, "text2": text2, "label": label, "repo": "o/r", "kind": kind}


def test_how_well_the_overlap_of_words_tells_the_kinds_apart():
    """Of four comparisons with hard pairs two are won and one is a draw; rare words weigh more."""
    measures = Measures("words", len)
    rows = [
        ("rare1 the", "rare1 the", "duplicate"), ("the two1", "the two2", "duplicate"),
        ("the three1", "the three2", "hard"), ("rare4 the x4 z4", "rare4 the y4 v4", "hard"),
        ("one5 the", "two5 other", "random"),
    ]  # fmt: skip
    for one, other, kind in rows:
        measures.add("train", make_row(one, other, kind))
    assert measures.summary()["lexical"] == {"hard": 0.625, "random": 1.0}


def test_how_well_masked_references_tell_the_labels_apart():
    """Two of three duplicates have one each, one of two negatives has three."""
    measures = Measures("words", len)
    assert measures.summary()["placeholder"] == {}
    for text1, text2, kind in [
        ("a [issue]", "b", "duplicate"), ("a", "b [issue]", "duplicate"), ("a", "b", "duplicate"),
        ("a [issue] [issue]", "b [issue]", "hard"), ("a", "b", "random"),
    ]:  # fmt: skip
        measures.add("train", make_row(text1, text2, kind))
    found = measures.summary()["placeholder"]
    assert found["pairs_with_one"] == {"duplicates": 66.67, "negatives": 50.0}
    # Of six comparisons two are won, one is lost and three are draws; by count three are lost.
    assert found["auc"] == {"presence": 0.583, "count": 0.417}


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
    (tmp_path / "tokenizer.json").write_text("{}")
    for bad in (tmp_path, tmp_path / "missing.json", "no/model"):
        with pytest.raises(InputError, match=f"--tokenizer {bad}: cannot read a tokenizer .* or a hub name"):
            token_counter(str(bad))


# The cards of two builds are among the golden outputs; here is what these do not have.
GOLDEN = Path(__file__).parents[2] / "golden" / "expected" / "gis-written-both.json"
REPORT = json.loads(GOLDEN.read_text("utf-8"))["report"]


def card(**changes):
    return render_gis_card({**REPORT, **changes})


BACKING = [
    ("owner", {"role": "OWNER"}), ("author of the duplicate", {"role": "NONE", "author": "reporter"}),
    ("labelled", {"role": "NONE", "labels": ("duplicate",)}), ("same original", {"role": "OWNER"}),
]  # fmt: skip


@pytest.mark.parametrize(("who", "backing"), BACKING)
def test_the_card_names_everybody_whose_word_makes_label_1(tmp_path, who, backing):
    """Whatever is accepted as evidence stands in the sentence that says what label 1 means."""
    labels = backing.pop("labels", ())
    bodies = {n: " ".join(f"w{n}x{i}" for i in range(30)) for n in (1, 2, 3)}
    issues = [make_issue(n, body=bodies[n], labels=labels if n > 1 else ()) for n in bodies]
    comments = [make_comment(n, n, "Duplicate of #1", 9, **{"author": "joe", **backing}) for n in (2, 3)]
    write_store(tmp_path, issues=issues, comments=comments)
    summary = build_gis(GisConfig(tmp_path, negatives=0, ratios=(1.0,)))
    assert summary.report["splits"]["train"]["positives"] == 3
    meaning = (summary.dataset / "README.md").read_text().partition("Label 1: ")[2].partition("Label 0")[0]
    assert who in " ".join(meaning.split())


def test_what_is_left_out_is_explained_and_nothing_is_said_of_nothing():
    dropped = {"closure": 3, "crosses_time_border": 2, "hub": 0}
    denied = {"denial_pull": 4, "denial_repeated": 1, "no_partner": 2}
    whole = card(pairs={"dropped": dropped}, negatives={"dropped": denied})
    for name in ("closure", "crosses_time_border"):
        assert f"| pair | `{name}` | {DROPPED[name]} | {dropped[name]} |" in whole
    assert "`hub`" not in whole
    assert "| negative pair | `denial_pull` | one of the ends is a pull request | 4 |" in whole
    assert "| negative pair | `denial_repeated` | said before | 1 |" in whole
    nothing = {"pairs": {"dropped": {}}, "negatives": {"dropped": {}}}
    bare = card(links={**REPORT["links"], "tentative": {}, "rejected": {}}, **nothing)
    assert "| reason |" not in bare
    assert "\nNothing.\n" in bare
    assert "](figures/" not in bare


def test_a_title_does_not_break_its_table():
    pair = {"url1": "https://x/o/r/issues/1", "url2": "https://x/o/r/issues/2", "evidence": "words:3",
            "evidence_url": "", "excerpt1": "A [b] | c", "excerpt2": "d"}  # fmt: skip
    row = "| `hard` | [#1](https://x/o/r/issues/1) A \\[b\\] \\| c | [#2]("
    assert row in card(samples={"hard": [pair]})
