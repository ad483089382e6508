"""Prompt files: the built-in sets, single-pass substitution, and the errors of hand-written prompts."""

import json
import re

import pytest

from angle_data.errors import InputError
from angle_data.labelling.prompts import load_prompts

FRONT = '+++\nplaceholders = ["size", "text"]\nreply = "text"\ndescription = "test"\n+++\n'
NO_SIZE = FRONT.replace('"size", ', "")


def test_the_papers_prompts_are_verbatim():
    prompts = load_prompts("paper")
    assert prompts["synonym"].fill({"size": "2", "text": "A dog runs"}) == (
        "You are a highly smart same-meaning sentence-generating system. Your job is to generate 2 "
        "synonymous sentences of a given input sentence. Input sentence: A dog runs. Output:"
    )
    assert prompts["antonym"].fill({"size": "3", "text": "A dog runs"}) == (
        "You are a highly smart opposite-meaning sentence-generating system. Your job is to generate 3 "
        "antonym sentences of a given input sentence. Input sentence: A dog runs. Output:"
    )
    assert prompts["synonym"].reply == "text"


@pytest.mark.parametrize("name", ["structured", "contrast", "degrees"])
def test_sets_that_ask_for_json_show_it_and_put_the_sentence_last(name):
    for asked, prompt in load_prompts(name).items():
        rendered = prompt.fill({"size": "2", "text": "A dog runs."})
        assert prompt.reply == "json"
        shown = json.loads(re.search(r"\{.*\}", rendered)[0])
        assert list(shown) == (list("54321") if asked == "degrees" else ["sentences"])
        assert rendered.endswith("Sentence: A dog runs.")


def test_the_prompt_for_degrees_says_what_each_means():
    rendered = load_prompts("degrees")["degrees"].fill({"text": "A dog runs."})
    found = [line[0] for line in rendered.splitlines() if re.match(r"\d: \w", line)]
    assert found == ["5", "4", "3", "2", "1"]
    assert "contradicts the sentence is a 2 at most" in rendered
    assert "must not give the degree away" in rendered


def write_set(folder, synonym, antonym=FRONT + "{size} {text}"):
    (folder / "synonym.txt").write_text(synonym, newline="\r\n")
    (folder / "antonym.txt").write_text(antonym)
    return str(folder)


def test_placeholders_inside_the_text_are_not_filled(tmp_path):
    prompts = load_prompts(write_set(tmp_path, "{size} of {text}\n", '+++\nreply = "json"\n+++\n{text}'))
    assert (prompts["synonym"].reply, prompts["antonym"].reply) == ("text", "json")
    assert prompts["synonym"].fill({"size": "2", "text": "{size} {text} \\1"}) == "2 of {size} {text} \\1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("+++\n{size} {text}", "its front matter has no second"),
        ("+++\nreply = \n+++\n{text}", "front matter is not valid TOML"),
        (FRONT.replace('"text"\n', '"xml"\n') + "{text}", 'reply must be "text" or "json", got \'xml\''),
        (FRONT.replace("+++\npl", "+++\nink = 1\npl") + "{text}", "unknown front matter key 'ink'"),
        (NO_SIZE + "{size} {text}", r"placeholders must list those of .* \(size, text\), got \['text'\]"),
        (FRONT + "{text}", r"placeholders must list those of the template \(text\), got"),
        (FRONT + "{size} {txt} {text}", r"placeholders must list .* \(size, text, txt\), got"),
        (FRONT.replace("size", "area") + "{area} {text}", r"use \{text\} and may use \{size\}, and no o"),
        (FRONT.replace(', "text"', "") + "{size}", r"the template must use \{text\}"),
    ],
)
def test_a_faulty_prompt_names_its_file(tmp_path, content, message):
    folder = write_set(tmp_path, content)
    with pytest.raises(InputError, match=message) as caught:
        load_prompts(folder)
    assert str(tmp_path / "synonym.txt") in str(caught.value)


def test_an_unknown_set_lists_the_known_ones():
    message = r"neither a folder nor a built-in .*\(contrast, degrees, paper, queries, structured\)"
    with pytest.raises(InputError, match=message):
        load_prompts("fancy")


def test_a_folder_of_degrees_holds_nothing_else(tmp_path):
    (tmp_path / "degrees.txt").write_text(NO_SIZE + "{text}")
    assert list(load_prompts(str(tmp_path))) == ["degrees"]
    (tmp_path / "antonym.txt").write_text(FRONT + "{size} {text}")
    with pytest.raises(
        InputError, match=r"or degrees.txt or query.txt alone; it has antonym.txt, degrees.txt"
    ):
        load_prompts(str(tmp_path))
    (tmp_path / "antonym.txt").unlink()
    (tmp_path / "degrees.txt").write_text(FRONT + "{size} {text}")
    with pytest.raises(InputError, match=r"degrees.txt: .* must use \{text\}, and no other"):
        load_prompts(str(tmp_path))
