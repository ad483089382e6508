"""The work of every function that searches a reply or a message grows with its length, and no faster.

Repetitions of every kind, alone, after good sentences and before an odd end, each as long as a hostile server
could send it. Where work grows with the square or worse, the limit of the process is passed by far: earlier
patterns took minutes to years for some of these.
"""

import json
import subprocess
import sys

import pytest

LENGTH, LIMIT_S = 30_000, 240
UNITS = [
    '"The node is full." ', "I ", "I cannot ", "I cannot do the ", "thank you ", " ", "\t", "\xa0",
    "\n", "a", "a.", ",,,,@", "1", "1 ", "1. A ", "5: ", "- ", "* ", "(", "[", "{", '{"', "[[", "<",
    "<think>", "</think>", "[THINK]", "<|x|>", "|", "-", "**", "**a** ", "_", "#", "Sure! ",
    "Sentence 1: ", "Answer: ", "answer:\n", "Here are ", "please provide ", "sorry ",
    "unfortunately ", "note: sentence ", "all sentences ", "as an ai ", "input: ", "Input: x\n",
    "\n- a", "\n1. a", "a) x", "a:", "http://", "a@", "a:a@", "&#", "%73", "\\u0073", "\x1b[",
    "\x1b]", "...", "!", "score ", "score: 1 ", "1-", "0 to 5 ", "Score of ", "a, ",
    "i am not able to ", "the given ", "hope this helps ", "if you ", "is there ",
    "would you like ", "analysis", "assistantfinal", "Thinking: ", "```", "\u201c", "\u201d ",
    "\u2019", "\u5982\u679c", "channel", "prompt ", "text ", "input too ", "context ",
]  # fmt: skip
CODE = f"""
import json, re, sys
from angle_data import http
from angle_data.annotators import answers, thinking, transport
from angle_data.labelling.replies import chatter, degrees, grades, parse

ROOM, UNITS = json.loads(sys.stdin.read())
S, N = "The node is full.", {LENGTH}
KEY = transport.Key(("sk-a+b/c",), re.compile("".join(map(transport._ways_to_write, "sk-a+b/c"))))
ROOMS = dict(
    sentences=(lambda t: parse.parse_reply(t, source=S, finish="cut", size=2, prompt="Write two."),
        lambda t: parse.parse_reply(t, source=S, finish="unknown", size=2, polarity="synonym"),
        lambda t: degrees.parse_degrees(t, source=S, finish="unknown")),
    grades=(lambda t: grades.parse_grades(t, count=1, finish="done"),
        lambda t: grades.parse_grades(t, count=3, finish="cut")),
    talk=(lambda t: chatter.is_refusal(t, S), lambda t: chatter.is_chatter(t, S),
        lambda t: chatter.is_about_task(t, S), lambda t: chatter.may_be_refusal(t, S), chatter.is_prompt_echo,
        chatter.is_heading, chatter.polarity_named),
    messages=(thinking.split_thinking, thinking.answer_in_thoughts,
        lambda t: answers.read_answer({{"choices": [{{"message": {{"content": t, "reasoning": t}}}}]}}),
        lambda t: answers.read_answer({{"choices": [{{"message": {{}}, "finish_reason": t}}]}}),
        lambda t: answers.reported_error({{"error": t}}, in_choice=False)),
    errors=(transport.masked, transport.one_line, lambda t: transport.page_title("<html>" + t),
        lambda t: transport.hidden(t, KEY),
        lambda t: transport._service_error(400, t.encode(), {{}}, KEY),
        lambda t: answers.wrong_with_text(http.ServiceError(400, t, frozenset(), {{}})),
        lambda t: http.retry_after({{"retry-after": t, "date": t}})),
)
for read in ROOMS[ROOM]:
    for unit in UNITS:
        body = (unit * (N // len(unit) + 1))[:N]
        for text in (body, "A node left.\\nIt is up. " + body + "x", "1. A node left. " + body):
            read(text)
"""


@pytest.mark.parametrize("room", ["sentences", "grades", "talk", "messages", "errors"])
def test_repetitions_of_every_kind_come_to_an_end(room):
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        input=json.dumps([room, UNITS]),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert not done.returncode, done.stderr[-2000:]
