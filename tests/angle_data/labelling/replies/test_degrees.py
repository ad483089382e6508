"""Replies to requests for degrees: the layouts, what names no degree, and every reason for a drop."""

import json

import pytest

from angle_data.labelling.replies.degrees import parse_degrees

SOURCE = "The night backup ran out of disk space."
SENTENCES = {
    5: "During the night the backup filled its disk completely.",
    4: "The backup ran out of space last night.", 3: "The night backup ran out of memory.",
    2: "The night backup had plenty of disk space.", 1: "Backups are kept for thirty days.",
}  # fmt: skip
MEANING = {
    5: "Exactly the same meaning", 4: "Mostly the same", 3: "Roughly the same; something important differs",
    2: "Not the same, but shares some details", 1: "Only the topic is the same",
}  # fmt: skip
REFUSAL = "I'm sorry, but I can't assist with that."
KEYS = {str(degree): text for degree, text in SENTENCES.items()}
OBJECTS = [{"degree": degree, "sentence": text} for degree, text in SENTENCES.items()]


def parse(raw, source=SOURCE, finish="unknown"):
    """The sentences by degree, and what was dropped as (degree, reason, text)."""
    parts = parse_degrees(raw, source=source, finish=finish)
    kept = [part for part in parts if part.reason is None]
    assert len({part.degree for part in kept}) == len(kept)
    assert parts[: len(kept)] == sorted(kept, key=lambda part: -part.degree)
    dropped = [(part.degree, part.reason, part.text) for part in parts if part.reason is not None]
    return {part.degree: part.text for part in kept}, dropped


def lines(form, items=SENTENCES, between="\n"):
    """One line or more for each degree: {d}, with its place {i}, sentence {s} and meaning {m}."""
    found = enumerate(items.items(), start=1)
    return between.join(form.format(d=d, i=i, s=s, m=MEANING[d]) for i, (d, s) in found)


LAYOUTS = {
    "json": json.dumps(KEYS),
    "json, indented": json.dumps(KEYS, indent=2),
    "json, upwards": json.dumps(dict(reversed(KEYS.items()))),
    "json in a fence": f"```json\n{json.dumps(KEYS, indent=2)}\n```",
    "json within a field": json.dumps({"sentences": KEYS}),
    "json within fields": json.dumps({"result": {"degrees": KEYS}}),
    "json, words in the names": json.dumps({f"degree_{d}": s for d, s in SENTENCES.items()}),
    "json, meaning in the names": json.dumps({f"{d} ({MEANING[d]})": s for d, s in SENTENCES.items()}),
    "json, list of objects": json.dumps(OBJECTS),
    "json, objects by place": json.dumps({str(i): item for i, item in enumerate(OBJECTS, start=1)}),
    "json, list of small objects": json.dumps([{d: s} for d, s in SENTENCES.items()]),
    "json, one object after the other": "\n".join(json.dumps({d: s}) for d, s in SENTENCES.items()),
    "json, objects within": json.dumps({d: {"sentence": s} for d, s in SENTENCES.items()}),
    "json, other names": json.dumps([{"similarity": f"{d}/5", "text": s} for d, s in SENTENCES.items()]),
    "missing commas": json.dumps(KEYS, indent=1).replace('",\n', '"\n'),
    "trailing comma": json.dumps(KEYS)[:-1] + ",}",
    "trailing comma, then talk": json.dumps(KEYS)[:-1] + ",}\n",
}


@pytest.mark.parametrize("raw", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_gives_the_sentence_of_each_degree(raw):
    assert parse(raw) == (SENTENCES, [])
    assert parse(raw, finish="done") == (SENTENCES, [])


@pytest.mark.parametrize("body", [json.dumps(KEYS), json.dumps(KEYS, indent=1)])
def test_talk_around_the_sentences_is_kept_as_chatter(body):
    said = [(None, "chatter", "Sure! Here are five sentences:"), (None, "chatter", "I hope this helps!")]
    assert parse(f"Sure! Here are five sentences:\n\n{body}\n\nI hope this helps!") == (SENTENCES, said)


NAMELESS = {
    "a list": lines("{d}: {s}"),
    "a list with words": lines("**Degree {d}** - {s}"),
    "headings": lines("### {d}\n{s}", between="\n\n"),
    "a table": lines("| {d} | {s} |"),
    "numbered upwards": lines("{i}. {s}"),
    "plain lines": lines("{s}"),
    "bullets": lines("- {s}"),
    "one label alone": f"5: {SENTENCES[5]}",
    "a number that is no degree": json.dumps(KEYS | {"0": "Rain fell."}),
    "labels in a list of strings": json.dumps([f"{d}: {s}" for d, s in SENTENCES.items()]),
    "numbers for names": str(SENTENCES),
    "a list in json": json.dumps(list(SENTENCES.values())),
    "a list in a field": json.dumps({"sentences": list(SENTENCES.values())}),
    "names that are places": json.dumps({f"sentence_{i}": s for i, s in enumerate(KEYS.values(), start=1)}),
    "counted from nought": json.dumps(dict(enumerate(SENTENCES.values()))),
    "of ten": json.dumps({2 * d: s for d, s in SENTENCES.items()}),
    "of one": json.dumps([{"score": d / 5, "sentence": s} for d, s in SENTENCES.items()]),
    "turned round, json": json.dumps({f"{6 - d} ({MEANING[d]})": s for d, s in SENTENCES.items()}),
    "one sentence": SENTENCES[5],
    "one numbered sentence": f"1. {SENTENCES[5]}",
}


@pytest.mark.parametrize("raw", NAMELESS.values(), ids=NAMELESS.keys())
def test_what_names_no_degree_is_not_guessed(raw):
    assert parse(raw) == ({}, [(None, "unparseable", raw)])


def cut(raw):
    """The reply without its end, in the midst of the last sentence."""
    return raw[: raw.index("pt for thirty")]


def without(*degrees):
    return {degree: text for degree, text in SENTENCES.items() if degree not in degrees}


@pytest.mark.parametrize(
    ("raw", "kept", "dropped"),
    [
        (json.dumps({"5": SENTENCES[5], "2": SENTENCES[2]}), without(4, 3, 1), []),
        (json.dumps(KEYS | {"3": None}), without(3), []),
        (json.dumps(KEYS | {"3": " "}), without(3), [(3, "empty", "")]),
        (json.dumps(KEYS | {"4": SOURCE}), without(4), [(4, "echo_source", SOURCE)]),
        (
            json.dumps(KEYS | {"4": f"“{SENTENCES[2]}”"}),
            without(4, 2),
            [(4, "duplicate", f"“{SENTENCES[2]}”"), (2, "duplicate", SENTENCES[2])],
        ),
        (json.dumps(KEYS | {"5": [SENTENCES[5]] * 2}), SENTENCES, [(5, "duplicate", SENTENCES[5])]),
        (json.dumps(KEYS | {"5": [SENTENCES[5], "A b c."]}), SENTENCES, [(5, "surplus", "A b c.")]),
        (json.dumps(KEYS | {"note": "Why so."}), SENTENCES, [(None, "other_data", "Why so.")]),
        (json.dumps({"notes": ["Why."], "sentences": KEYS}), SENTENCES, [(None, "other_data", "Why.")]),
        (json.dumps([OBJECTS[0] | {"why": "So."}]), without(4, 3, 2, 1), [(None, "other_data", "So.")]),
        (json.dumps(KEYS | {"3": REFUSAL}), without(3), [(3, "refusal", REFUSAL)]),
        ("", {}, [(None, "empty", "")]),
        (REFUSAL, {}, [(None, "refusal", REFUSAL)]),
    ],
)  # fmt: skip
def test_partial_replies_and_reasons(raw, kept, dropped):
    assert parse(raw) == (kept, dropped)


@pytest.mark.parametrize(
    ("raw", "finish", "kept", "dropped"),
    [
        (cut(json.dumps(KEYS)), None, without(1), [(1, "truncated", "Backups are ke")]),
        (cut(json.dumps(KEYS)), "cut", without(1), [(1, "truncated", "Backups are ke")]),
        (cut(json.dumps({"a": KEYS}, indent=1)), "cut", without(1), [(1, "truncated", "Backups are ke")]),
        (cut(json.dumps(OBJECTS)), "cut", without(1),
         [(None, "chatter", cut(json.dumps(OBJECTS)).split("}")[-1])]),
        (json.dumps(KEYS)[:-37], "cut", without(1), []),
        ("", "cut", {}, [(None, "truncated", "")]),
        ('{"5": "", "4": ""', "cut", {}, [(5, "truncated", ""), (4, "truncated", "")]),
        ("Sure! Here are", "cut", {}, [(None, "truncated", "Sure! Here are")]),
        ("<think>A 5 could", "cut", {}, [(None, "truncated", "<think>A 5 could")]),
    ],
)  # fmt: skip
def test_cut_off_replies(raw, finish, kept, dropped):
    assert parse(raw, finish=finish) == (kept, dropped)


OF_THE_DOMAIN = [
    "24 backups failed.", "5 - 3 was the score of the night.", "3:1 is the ratio of failed to good backups.",
    "[ERROR] backup failed (exit 4)", "(AP) Backup fails",
    'The log says {"code": 5, "why": "full"} each night.', "Backup: the same details as on 3. May",
    "It's the 'night backup' that failed.",
]  # fmt: skip


@pytest.mark.parametrize("sentence", OF_THE_DOMAIN)
def test_sentences_of_the_domain_survive(sentence):
    for degree in (5, 2):
        given = SENTENCES | {degree: sentence}
        keys = json.dumps({str(d): s for d, s in given.items()})
        for raw in (keys, keys[:-1] + ",}"):
            assert parse(raw, finish="done") == (given, [])


@pytest.mark.parametrize("gloss", ["not the same meaning", "not identical", "isn't equivalent"])
def test_a_name_may_say_in_brackets_what_its_degree_is_not(gloss):
    names = ("5 (same meaning)", "4", "3", "2", f"1 ({gloss})")
    reply = json.dumps({name: f"sentence of {name[0]} words" for name in names})
    parts = parse_degrees(reply, source="The disk failed.", finish="done")
    assert [part.degree for part in parts if part.reason is None] == [5, 4, 3, 2, 1]
