"""The quick look by words skips no phrase that would be found, in any language, whatever the text."""

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from angle_data.gis.comments import grammar
from angle_data.gis.comments.needed import folded, needed_words, possible_phrases
from angle_data.gis.comments.phrases import PHRASES
from angle_data.gis.comments.reading import read_comment
from angle_data.gis.comments.references import REF, SELF

ROOT = Path(__file__).resolve().parents[4]
FOLDERS = (ROOT / "tests" / "fixtures" / "gis", ROOT / "benchmarks" / "gis")
FILES = sorted(path for folder in FOLDERS for path in folder.glob("comments-*.jsonl"))
WORDS = {phrase: needed_words(phrase.pattern.pattern, phrase.pattern.flags) for phrase in PHRASES}
EXAMPLES = [re.sub(r"#\d+", REF, phrase.example) for phrase in PHRASES]


def skipped(sentence):
    """The examples of phrases that are found in a sentence although the quick look would skip them."""
    possible = possible_phrases(sentence)
    return [
        phrase.example
        for phrase in PHRASES
        if phrase.pattern.search(sentence) is not None and phrase not in possible
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_comments_say_the_same_with_and_without_the_quick_look(path, monkeypatch):
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def read_all():
        return [
            read_comment(row["body"], row["repo"], row["number"], author=row.get("author")) for row in rows
        ]

    quick = read_all()
    tried = []
    monkeypatch.setattr(grammar, "possible_phrases", lambda sentence: tried.append(sentence) or PHRASES)
    assert quick == read_all()
    assert len(tried) > 50
    assert [sentence for sentence in tried if skipped(sentence)] == []


PIECES = st.one_of(
    st.sampled_from([REF, REF, SELF, "#", "(", ", ", ".", ":", "? ", " - ", "'s ", "\n"]),
    st.sampled_from(sorted(set().union(*WORDS.values()))),
    st.sampled_from(sorted({word for sentence in EXAMPLES for word in sentence.split()})),
    st.sampled_from(EXAMPLES),
    st.text(max_size=4),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=12), st.sampled_from([" ", ""]), st.sampled_from(["", "upper", "title"]))
@example(["ıdentıcal to", REF], " ", "")
@example(["İDENTİCAL TO", REF], " ", "")
@example(["ſame iſſue aſ", REF], " ", "")
@example(["tracKed in", REF], " ", "")
def test_no_phrase_is_skipped_in_any_text(pieces, between, case):
    text = between.join(pieces)
    assert skipped(getattr(text, case)() if case else text) == []


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.example)
@settings(max_examples=4, suppress_health_check=[*HealthCheck], deadline=None)
@given(data=st.data())
def test_no_phrase_is_skipped_in_texts_that_its_pattern_writes(phrase, data):
    assert skipped(data.draw(st.from_regex(phrase.pattern))) == []


def test_letters_that_the_patterns_take_for_one_are_folded_to_one():
    letters = sorted(set().union(*map(set, set().union(*WORDS.values()))))
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    alike = set(re.findall(f"[{re.escape(''.join(letters))}]", everything, re.IGNORECASE))
    assert {"İ", "ı", "ſ", "K", "É", "Ж"} <= alike
    for letter in letters:
        same = [sign for sign in alike if re.fullmatch(re.escape(letter), sign, re.IGNORECASE)]
        assert {folded(sign) for sign in same} == {letter}


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?:clos|mark)\\w*+ this", {" this"}),
        ("(?:closing|marking) a", {"closing", "marking"}),
        ("a?b+", {"b"}),
        ("a?", set()),
        ("same|", set()),
        ("(?!never)[^x]\\w", set()),
        ("(?=.*already)x", {"already"}),
        ("(?:duplicate|dup)", {"dup"}),
        ("[ä和]x?", {"ä", "和"}),
        ("(a)?(?(1)same|other)", set()),
        ("İSSUE", {"issue"}),
    ],
)
def test_words_are_read_off_a_pattern(pattern, words):
    assert needed_words(pattern, re.IGNORECASE) == words


def test_most_phrases_are_skipped():
    assert [phrase.example for phrase, words in WORDS.items() if not words] == []
    assert len(possible_phrases(f"The log of {REF} shows a crash in the parser.")) < 6
