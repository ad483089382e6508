"""Reply parsing: every layout a chat model answers in, every reason for a drop, and the demo's yields."""

import json
from typing import NamedTuple

import pytest

from angle_data.labelling.replies.parse import parse_reply
from angle_data.text import longest_answer

SOURCE = "Failover to the standby took nine minutes."
A = "Switching to the standby needed nine minutes."
B = "It took nine minutes until the standby was in charge."


class Parsed(NamedTuple):
    """The sentences of a reply, and (reason, text) of what was dropped."""

    sentences: tuple[str, ...]
    rejected: tuple[tuple[str, str], ...]


def parse(raw, source=SOURCE, finish="unknown", size=2, **more):
    parts = parse_reply(raw, source=source, finish=finish, size=size, **more)
    sentences = tuple(part.text for part in parts if part.reason is None)
    return Parsed(sentences, tuple((part.reason, part.text) for part in parts if part.reason))


LAYOUTS = {
    "numbered": f"1. {A}\n2. {B}",
    "bracket": f"1) {A}\n2) {B}",
    "square": f"[1] {A}\n[2] {B}",
    "no space": f"1.{A}\n2.{B}",
    "from zero": f"0. {A}\n1. {B}",
    "letters": f"a) {A}\nb) {B}",
    "chinese": f"一、{A}\n二、{B}",
    "circled": f"① {A}\n② {B}",
    "bold number": f"**1.** {A}\n**2.** {B}",
    "labels": f"Synonym 1: {A}\nSynonym 2: {B}",
    "bold labels": f"**Sentence 1:** {A}\n**Sentence 2:** {B}",
    "label on its own line": f"Sentence 1:\n{A}\n\nSentence 2:\n{B}",
    "number and label": f"1. Synonym: {A}\n2. The revised sentence: {B}",
    "continues a prompt that ends in 1.": f"{A}\n2. {B}",
    "wrapped": f"1. {A[:12]}\n   {A[12:].strip()}\n2. {B}",
    "one line": f"1. {A} 2. {B}",
    "one line after a heading": f"Here are two synonymous sentences: 1. {A} 2. {B}",
    "bullets": f"- {A}\n- {B}",
    "lines": f"{A}\n{B}",
    "windows lines": f"1. {A}\r\n2. {B}\r\n",
    "quoted lines": f'"{A}"\n"{B}"',
    "single quotes": f"1. '{A}'\n2. '{B}'",
    "quoted, one line": f'"{A}" "{B}"',
    "quoted with and": f'"{A}" and "{B}"',
    "slash": f"{A} / {B}",
    "greeting and list on one line": f"Sure! 1. {A} 2. {B}",
    "italics": f"1. *{A}*\n2. *{B}*",
    "json": json.dumps({"sentences": [A, B]}),
    "json, other key": json.dumps({"antonyms": [A, B]}),
    "json, nested": json.dumps({"result": {"sentences": [A, B]}}),
    "json, objects": json.dumps({"sentences": [{"text": A}, {"text": B}]}),
    "json, numbered inside": json.dumps({"sentences": [f"1. {A}", f"2. {B}"]}),
    "json lines": json.dumps({"sentence": A}) + "\n" + json.dumps({"sentence": B}),
    "json after talk": f"Sure! Here you go:\n{json.dumps([A, B])}\nLet me know if you need more!",
    "fenced json": f"```json\n{json.dumps({'sentences': [A, B]})}\n```",
    "fenced lines": f"```\n{A}\n{B}\n```",
    "fence on the line": f"```{A}\n{B}```",
    "trailing comma": f'{{"sentences": ["{A}", "{B}",]}}',
    "unclosed list of closed strings": f'{{"sentences": ["{A}", "{B}"',
    "numbered bullets": f"* 1. {A}\n* 2. {B}",
    "bullet for the second only": f"{A}\n- {B}",
    "arrows": f"→ {A}\n→ {B}",
    "ticks": f"✅ {A}\n✅ {B}",
    "one line, semicolon": f"1. {A}; 2. {B}",
    "bold headings": f"**Synonym 1**\n{A}\n\n**Synonym 2**\n{B}",
    "either": f'Either "{A}" or "{B}"',
    "end of turn": f"1. {A}\n2. {B}<|eot_id|>",
    "header": f"<|start_header_id|>assistant<|end_header_id|>\n\n{A}\n{B}<|eot_id|>",
    "role": f"assistant\n\n{A}\n{B}",
    "json on the line of talk": f"Sure! {json.dumps({'sentences': [A, B]})} Hope this helps!",
    "json in a sentence": f"The JSON that you wanted is {json.dumps({'sentences': [A, B]})}",
    "json in list items": f"1. {json.dumps({'sentence': A})}\n2. {json.dumps({'sentence': B})}",
    "json string of json": json.dumps(json.dumps({"sentences": [A, B]})),
    "json string of lines": json.dumps(f"{A}\n{B}"),
    "python assignment": f'sentences = ["{A}", "{B}"]',
}


@pytest.mark.parametrize("raw", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_gives_its_two_sentences(raw):
    parsed = parse(raw)
    assert parsed.sentences == (A, B)
    assert {reason for reason, _ in parsed.rejected} <= {"chatter"}


HEADINGS = [
    "Sure!", "Sure, here you go:", "Sure, I'd be happy to help! Here are two synonymous sentences:",
    "I'd be happy to generate 2 synonymous sentences for you.", "Here's my attempt:",
    f'Here are two synonymous sentences of the input sentence "{SOURCE}":', "Output:",
    "Opposite-meaning sentences:",
    "As a highly smart opposite-meaning sentence-generating system, here are my 2 antonym sentences:",
    "以下是两个同义句：", "Got it.", "Let me think about this.",
    "Two rephrasings, in plain words, for your incident log:", "Aquí tienes dos oraciones:",
]  # fmt: skip
CLOSERS = [
    "I hope this helps!", "Let me know if you need more examples!",
    "Please note that these are just two possible antonym sentences.",
    "(Both sentences say the opposite of the input.)",
    "These sentences express the opposite meaning of the original sentence.", "Have a great day!",
]  # fmt: skip


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("body", [f"1. {A}\n2. {B}", f"- {A}\n- {B}", f"{A}\n{B}"])
def test_headings_are_dropped_and_kept_as_chatter(heading, body):
    parsed = parse(f"{heading}\n\n{body}")
    assert parsed.sentences == (A, B)
    assert {reason for reason, _ in parsed.rejected} == {"chatter"}


@pytest.mark.parametrize("closer", CLOSERS)
@pytest.mark.parametrize("body", [f"1. {A}\n2. {B}", f"{A}\n\n{B}"], ids=["list", "lines"])
@pytest.mark.parametrize("gap", ["\n", "\n\n", " "], ids=["next line", "blank line", "same line"])
def test_closing_remarks_are_dropped_and_kept_as_chatter(closer, body, gap):
    parsed = parse(body + gap + closer)
    assert parsed.sentences == (A, B)
    assert {reason for reason, _ in parsed.rejected} == {"chatter"}


# Sentences of the domain that look like markup, talk or refusals, and are none.
DOMAIN = [
    "[deploy-bot] rollout of web-frontend paused: 3 of 20 instances failed readiness.",
    "[09:11Z] checkout-api p99 180ms -> 2400ms", "[3] nodes are gone",
    "1.29 control plane upgrade went through.", "2 million rows were accepted and 14 were rejected.",
    "-1 returned by the probe since noon", ">256 KB: queue says no, client just swallows it",
    "*.api.example.net does not cover the bare domain.",
    "Impact: 1,800 failed payments, all of which were retried.",
    "Steps: 1. checksum verification 2. transfer of dump to isolated network",
    'auto failover slept through it, the check only asks "is the port open?"',
    '"It is fine," said the vendor, and "nobody is affected."',
    "We can't restart the node until the drain is done.",
    "We are sorry, but the export cannot be generated today.",
    "Sorry, the gateway cannot process your request.", "Please note that the node reboots at noon.",
    "Let me know when the standby has caught up.", "Okay to page the team at night, the rest may wait.",
    "Sure enough, the standby was down as well.",
    "The two nodes have the same address and neither is reachable.",
    "ConfigMap updated, pods not restarted, old settings still active", "Option A: drain the node first.",
    "First: drain the node, then reboot it.", "v. good throughput since noon", "1: the pool is empty",
    'The alert said {"level": "warn"} and nothing else.',
    'Set hosts to ["node1", "node2"] before the restart.',
    "| node | state | was all that the dashboard showed.",
    "Write <p> to open a paragraph and </p> to end it.", "No problem with the standby since noon.",
    "We are unable to restart the node until the drain is done.",
    "We are unable to process this request until the standby is ready.",
    "No opposite signals from the standby.",
]  # fmt: skip


@pytest.mark.parametrize("sentence", DOMAIN)
@pytest.mark.parametrize(
    "layout",
    ["{0}", "1. {0}\n2. Another one.", "- {0}\n- Another one.", "Another one.\n{0}"],
    ids=["alone", "numbered", "bullets", "second line"],
)
def test_domain_sentences_survive_in_text(sentence, layout):
    parsed = parse(layout.format(sentence), source="Standby caught up with the primary, restart when ready")
    assert sentence in parsed.sentences
    assert parsed.rejected == ()


@pytest.mark.parametrize("sentence", DOMAIN)
def test_domain_sentences_survive_in_json(sentence):
    assert parse(json.dumps({"sentences": [sentence, B]})).sentences == (sentence, B)


REFUSALS = [
    "I'm sorry, but I cannot generate content that involves poison or harmful substances.",
    "I apologize, but as an AI language model I cannot provide opinions on elections or leaders.",
    "I'm sorry, but the input sentence does not provide enough context for me to generate antonym sentences.",
    "I'm sorry, but I need more information about the input sentence. Could you please give me a sentence?",
    "Hi! Thanks for your message. How can I assist you today?",
    "1. I'm sorry, I can't generate sentences about harming a child.\n2. If one is in danger, call for help.",
    "I can't help with that.\n\nHowever, there are many resources on this topic.",
    '{"sentences": ["I\'m sorry, but I can\'t assist with that request."]}', "抱歉，我无法完成这个请求。",
    "作为一个AI语言模型，我不能生成这样的内容。", "Es tut mir leid, aber ich kann dabei nicht helfen.",
    "We are unable to process this request.", "The request cannot be fulfilled because it lacks context.",
    "This content may violate our usage policies.",
    "I need more context to paraphrase this sentence. Could you share more?", "N/A",
    "Unfortunately, I cannot assist with that request. Here is why:\n1. It is secret.\n2. I lack context.",
]  # fmt: skip


@pytest.mark.parametrize("raw", REFUSALS)
def test_refusals_give_no_sentence(raw):
    parsed = parse(raw)
    assert parsed.sentences == ()
    assert {reason for reason, _ in parsed.rejected} == {"refusal"}


def test_where_the_source_speaks_as_i_a_refusal_is_one_that_shares_nothing_with_it():
    source, kept = "I always answer the phone at night.", "I can't answer the phone at night."
    assert parse(f"1. {kept}", source).sentences == (kept,)
    for said in ("I'm sorry, but I can't assist with that.", "I cannot help you with this."):
        assert parse(said, source) == ((), (("refusal", said),))


@pytest.mark.parametrize(
    ("raw", "finish", "kept", "cut"),
    [
        (f"1. {A}\n2. It took nine minutes until", "cut", (A,), "It took nine minutes until"),
        (f"1. {A}\n2. {B}", "cut", (A, B), None),
        ("It took nine", "cut", (), "It took nine"),
        (f'{{"sentences": ["{A}", "It took', "cut", (A,), "It took"),
        (f'{{"sentences": ["{A}", "It took', None, (A,), "It took"),
        (json.dumps({"sentences": ["no mark", "none here"]}), "cut", ("no mark", "none here"), None),
        (f'"{A}"\n"It took nine', None, (A,), '"It took nine'),
        (f'"{A}"\n"It took nine', "done", (A,), '"It took nine'),
        (f'Sure! {{"sentences": ["{A}", "It took', "cut", (A,), "It took"),
        (f"1. {A}\n2. It took nine minutes until", None, (A,), "It took nine minutes until"),
        (f"* {A}\n* It took nine", None, (A,), "It took nine"),
        (f"{A}\nIt took nine", None, (A,), "It took nine"),
        # The model says that it stopped by itself: a missing full stop is its style.
        (f"1. {A}\n2. It took nine minutes", "done", (A, "It took nine minutes"), None),
        # No sentence of the reply has an end mark, or the first already lacks it.
        ("1. took nine minutes\n2. nine it took", None, ("took nine minutes", "nine it took"), None),
        (f"1. took nine\n2. {B}", None, ("took nine", B), None),
        (f"1. {A}\n2. {B}\n\nLet me know", "cut", (A, B), None),
    ],
)
def test_cut_off_sentences(raw, finish, kept, cut):
    parsed = parse(raw, finish=finish)
    assert parsed.sentences == kept
    assert [text for reason, text in parsed.rejected if reason == "truncated"] == [cut] * (cut is not None)


@pytest.mark.parametrize(
    ("raw", "sentences", "rejected"),
    [
        (f"1. {SOURCE.upper()}\n2. {A}", (A,), [("echo_source", SOURCE.upper())]),
        (f"1. {A}\n2. {A.lower()}", (A,), [("duplicate", A.lower())]),
        (f"1. {A}\n2. {B}\n3. A third one.", (A, B), [("surplus", "A third one.")]),
        (f"1. {SOURCE}\n2. {A}\n3. {B}", (A, B), [("echo_source", SOURCE)]),
        ("", (), [("empty", "")]),
        (" \n ", (), [("empty", " \n ")]),
        ("1.\n2.", (), [("empty", ""), ("empty", "")]),
        ("...", (), [("empty", "...")]),
        ('{"sentences": []}', (), [("unparseable", '{"sentences": []}')]),
        ('{"error": {"code": 3}}', (), [("unparseable", '{"error": {"code": 3}}')]),
        ('{"sentences": [}', (), [("unparseable", '{"sentences": [}')]),
        (f"{A}\n| {B} |", (A,), [("unparseable", f"| {B} |")]),
        (f"{A}\n{B}<|im_end|><|im_start|>user\nMore!", (A, B), [("echo_prompt", "user\nMore!")]),
        (f"{A}\n{B}<|endoftext|>Human: hi", (A, B), [("echo_prompt", "Human: hi")]),
    ],
)
def test_reasons(raw, sentences, rejected):
    parsed = parse(raw)
    assert parsed.sentences == sentences
    assert list(parsed.rejected) == rejected


@pytest.mark.parametrize(
    ("value", "kept", "beside"),
    [
        ({"synonyms": [A], "antonyms": [B]}, [A], [B]),
        ({"sentences": [A, 7, B, None]}, [A, B], []),
        ({"sentences": [A, B], "note": "Both are short."}, [A, B], ["Both are short."]),
        ({"n": 2, "ok": True, "empty": [], "result": {"sentences": [A, B]}}, [A, B], []),
        ([{"sentence": A, "why": "same time"}, {"sentence": B, "id": 2}], [A, B], ["same time"]),
        ({"sentence1": A, "sentence2": B, "comment": "done"}, [A, B], ["done"]),
        ({"keywords": ["standby", "nine"], "sentences": [A, B]}, [A, B], ["standby", "nine"]),
        ({"text": "Failover took 9 min.", "paraphrase": A}, [A], ["Failover took 9 min."]),
        ([{"sentence": "Failover took 9 min.", "paraphrase": A}], [A], ["Failover took 9 min."]),
    ],
)
def test_what_stands_beside_the_sentences_of_json_is_listed(value, kept, beside):
    parsed = parse(json.dumps(value))
    assert list(parsed.sentences) == kept
    assert list(parsed.rejected) == [("other_data", text) for text in beside]


PROMPT = """Write {size} sentences that say exactly the same as the sentence at the end.

- Keep the terms of its field and sound like someone who works in it.
- Keep every fact: names, numbers, units.

Sentence: {text}"""


@pytest.mark.parametrize("layout", ['{{"sentences": ["{}"]}}', "1. {}"])
def test_what_stands_in_the_prompt_and_not_in_the_source_is_no_sentence(layout):
    copies = ("Keep the terms of its field and sound like someone.", "keep every fact: names; numbers; units")
    for said in copies:
        found = parse(layout.format(said), finish="done", prompt=PROMPT)
        assert found == ((), (("echo_prompt", said),))
    for said in ("As the sentence.", A):  # the first has too few words to tell
        assert parse(layout.format(said), finish="done", prompt=PROMPT).sentences == (said,)
    source = "We keep every fact, names, numbers, units and the like."
    said = "Keep every fact, names, numbers, units!"
    assert parse(layout.format(said), source, "done", prompt=PROMPT).sentences == (said,)


TALK = [
    f'This sentence is "{SOURCE}"', f"{SOURCE} This sentence contradicts the first one.",
    "It is a variation of the original sentence.",
    "This system can generate multiple sentences of the same kind.",
    "The return of the standby is an antonym of its loss.", f"{SOURCE} Sentence:",
]  # fmt: skip


@pytest.mark.parametrize("talk", TALK)
def test_talk_about_the_task_is_chatter_unless_the_source_speaks_of_sentences(talk):
    assert parse(json.dumps([talk])).rejected == (("chatter", talk),)
    legal = "The second sentence was suspended."
    assert parse("The original sentence was suspended.", source=legal).sentences


@pytest.mark.parametrize("times", [1, 2, 3.5])
def test_a_source_that_is_given_back_again_and_again_is_an_echo(times):
    said = f"{SOURCE} " * int(times) + SOURCE[: int(len(SOURCE) * (times % 1))]
    assert parse(json.dumps([said.strip()])).rejected == (("echo_source", said.strip()),)


def test_a_string_that_fills_its_schema_was_cut_off():
    long = ("the standby and " * 100)[: longest_answer(SOURCE)]
    assert parse(json.dumps([long, A]), finish="done").sentences == (A,)
    assert parse(json.dumps([long[1:], A]), finish="done").sentences == (long[1:].strip(), A)


@pytest.mark.parametrize("raw", ['{"', "```", '```json\n{"', '{"sentences": [', '{"sentences": ["", "'])
def test_a_reply_that_was_cut_before_its_first_sentence_was_cut(raw):
    assert {reason for reason, _ in parse(raw, finish="cut").rejected} == {"truncated"}


def test_a_repeated_prompt_and_a_made_up_next_task_are_echoes():
    prompt = (
        "You are a highly smart same-meaning sentence-generating system. Your job is to generate 2 "
        f"synonymous sentences of a given input sentence. Input sentence: {SOURCE} Output:"
    )
    parsed = parse(f"{prompt}\n1. {A}\n2. {B}\n\nInput sentence: The cat sleeps.\nOutput:\n1. The cat naps.")
    assert parsed.sentences == (A, B)
    assert [reason for reason, _ in parsed.rejected] == ["echo_prompt", "echo_prompt"]
    assert "The cat naps." in parsed.rejected[1][1]


LOG_LINE = '{"level": "warn", "msg": "disk full"}'
LONG_FIRST = "Somebody had to wake up in the dead of night."


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        # A refusal that offers sentences all the same is none.
        (f"I cannot generate exact opposites, but these come close:\n1. {A}\n2. {B}", (A, B)),
        (f"I'm sorry, I can't provide exact ones. Here are two that come close:\n1. {A}\n2. {B}", (A, B)),
        (f"I cannot generate exact opposites.\n{json.dumps([A, B])}", (A, B)),
        # A log line or a ticket gives no evidence of a cut.
        *((f"{A}\n{said}", (A, said)) for said in ("[02:41] no primary", "+8 workers", "Ticket: no power")),
        (f"{A}\nit took over", (A, "it took over")),
        # It may be JSON, where that cannot be the reply itself.
        (f"1. {LOG_LINE}\n2. {A}", (LOG_LINE, A)),
        (json.dumps({"sentences": [LOG_LINE, A]}), (LOG_LINE, A)),
        # A full stop after the closing quotation mark is the sentence's own.
        (f'1. "{A[:-1]}".\n2. “{B[:-1]}”.', (A, B)),
        (f'1. "{A[:-1]}"\n2. “{B[:-1]}”', (A[:-1], B[:-1])),
        # Neither a long first line, nor what is not all of the reply, nor a broken line is talk.
        (f"Somebody had to wake up in the dead of night.\n{A}", (LONG_FIRST, A)),
        (f"We cannot process this request.\n{B}", ("We cannot process this request.", B)),
        ('{"sentence": "Nine minutes\\nit took."}', ("Nine minutes it took.",)),
    ],
)
def test_what_may_be_a_sentence_is_one(raw, kept):
    assert parse(raw).sentences == kept


@pytest.mark.parametrize(
    "raw",
    [
        f"| # | Sentence |\n|---|---|\n| 1 | {A} |\n| 2 | {B} |",
        f"No | Sentence\n---|---\n1 | {A}\n2 | {B}",
        f'<output><s1>{A}</s1><sentence id="2">{B}</sentence></output>',
        json.dumps({"result": f"1. {A}\n2. {B}"}),
        f'{{"sentences": [\n// first\n"{A}",\n"{B}"]}}',
    ],
    ids=["table", "table without edges", "tags of its own", "list in a string", "json with comments"],
)
def test_a_layout_that_is_not_read_gives_no_sentence(raw):
    parsed = parse(raw)
    assert parsed.sentences == ()
    assert {reason for reason, _ in parsed.rejected} == {"unparseable"}


@pytest.mark.parametrize(("polarity", "kept"), [("synonym", A), ("antonym", "It took no time.")])
def test_of_json_with_both_polarities_the_one_that_was_asked_for_is_kept(polarity, kept):
    raw = json.dumps({"antonyms": ["It took no time."], "synonyms": [A]})
    parsed = parse(raw, finish="done", polarity=polarity)
    assert parsed.sentences == (kept,)
    assert "other_data" in {reason for reason, _ in parsed.rejected}


@pytest.mark.parametrize(
    ("raw", "source", "kept"),
    [
        ("Option A: wait.\nOption B: go.", "Option A: stay", None),
        (LOG_LINE, '{"level": "warn", "msg": "no space"}', None),
        # Its number is no marker, and where it lacks an end mark that is no evidence of a cut.
        ("1. We are on version 2. It works.", "Release 2 is live.", ("We are on version 2. It works.",)),
        ("1. Version 1 died. 2. Version 2 died.", "Release 2 is up.", ("Version 1 died.", "Version 2 died.")),
        ("1. It is away.\n2. [02:41] no disk", "[02:41] disk gone", ("It is away.", "[02:41] no disk")),
        ("It sends <|im_end|>.\nIt ends <|im_end|>.", "The node writes <|im_end|> two times.", None),
        ("| up | node1 |\n| up | node2 |", "| down | node1 |", None),
        ("1. The second (score: 0.9)", "Run two (score: 0.9)", ("The second (score: 0.9)",)),
        ("Got it!\nUnderstood.", "OK, got it.", None),
        ("Assistant: please reboot.", "Assistant: please restart.", None),
        ('It says {"sentences": ["a b c"]} now.', 'The call returned {"code": 7}.', None),
        # No refusals: who asked says no, or speaks of a service that does.
        ("I cannot assist in the migration.", "I can't help with the migration.", None),
        ("I'm sorry, but I will not answer any pages.", "Sorry, I won't answer pages tonight.", None),
        ("I am unable to create tickets.", "I'm not able to create tickets.", None),
        ("We cannot process the request.", "The gateway is unable to process the request.", None),
    ],
)
def test_what_the_source_says_as_well_is_part_of_the_sentence(raw, source, kept):
    assert parse(raw, source=source).sentences == (kept or tuple(raw.splitlines()))


@pytest.mark.parametrize(
    "form",
    [
        "1: {}\n2: {}",
        "1- {}\n2- {}",
        "1 - {}\n2 - {}",
        "1\t{}\n2\t{}",
        "1\ufe0f\u20e3 {}\n2\ufe0f\u20e3 {}",
        "A. {}\nB. {}",
        "First: {}\nSecond: {}",
        "Option A: {}\nOption B: {}",
        "\\item {}\n\\item {}",
        "{} (similarity: 0.9)\n{} (similarity: 0.8)",
    ],
)
def test_marks_of_lists_do_not_become_words_of_sentences(form):
    said = ("We lost the disk of unit one.", "The drive of unit one has broken down.")
    source = "The disk of unit 1 failed."
    parts = parse_reply(form.format(*said), source=source, finish="done", size=2)
    assert [(part.text, part.reason) for part in parts] == [(text, None) for text in said]


@pytest.mark.parametrize("text", ["A. Smith lost the disk.", "First: stop the node, then replace it."])
def test_what_looks_like_a_mark_once_is_a_part_of_the_sentence(text):
    (part,) = parse_reply(text, source="The disk failed.", finish="done", size=2)
    assert (part.text, part.reason) == (text, None)


@pytest.mark.parametrize("text", ["['The disk broke.', 'It failed.']", "{'sentences': ['The disk broke.']}"])
def test_what_python_writes_is_unparseable_as_a_whole(text):
    (part,) = parse_reply(text, source="The disk failed.", finish="done", size=2)
    assert (part.text, part.reason) == (text, "unparseable")


def test_a_number_is_no_sentence():
    parts = parse_reply("The disk broke.\n4", source="The disk failed.", finish="done", size=2)
    assert [(part.text, part.reason) for part in parts] == [("The disk broke.", None), ("4", "other_data")]
