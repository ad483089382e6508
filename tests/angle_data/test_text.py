import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.text import content_id, counted, jaccard, normalise, printable, whole_characters, words


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("The disk is full.", "the  disk is\tfull", True),
        ("“Disk full”", '"disk full"', True),
        ("It’s down!", "it's down", True),
        ("ﬁle not found", "file not found", True),  # NFKC
        ("STRASSE", "straße", True),  # case folding
        ("disk full", "disk not full", False),
        ("1.29 is out", "1.30 is out", False),
        ("a-b", "a b", False),
    ],
)
def test_spellings_of_one_text_are_equal_and_different_texts_are_not(a, b, equal):
    assert (normalise(a) == normalise(b)) is equal


@given(st.text())
def test_normalising_twice_changes_nothing_more(text):
    assert normalise(normalise(text)) == normalise(text)


def test_words_and_overlap_by_hand():
    assert words("Disk /dev/sda1 is FULL, full!") == {"disk", "dev", "sda1", "is", "full"}
    assert jaccard(words("a b c"), words("b c d")) == 0.5
    assert jaccard(frozenset(), frozenset()) == 0.0


def test_content_ids_tell_texts_apart_and_do_not_change():
    assert content_id("a") == "ca978112ca1bbdca"  # the first 16 digits of the SHA-256 of "a"
    assert content_id("a ") != content_id("a")


def test_numbers_have_their_noun():
    assert [counted(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]


HALVES = [
    ("plain ü 好 \U0001f600", "plain ü 好 \U0001f600"), ("half \ud83d.", "half \ufffd."),
    ("other half \ude00.", "other half \ufffd."), ("\ud83d\ude00 in two", "\U0001f600 in two"),
    ("wrong order \ude00\ud83d", "wrong order \ufffd\ufffd"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "whole"), HALVES)
def test_halves_of_characters_are_joined_or_replaced(text, whole):
    assert whole_characters(text) == whole


def test_what_steers_a_terminal_is_taken_out():
    assert printable("\x1b[31mred\x1b[0m\ta\nb\r\x07\x00\x7f\x9b\u202e!") == "red\ta\nb !"
    assert printable("Ünï 好 – …") == "Ünï 好 – …"
