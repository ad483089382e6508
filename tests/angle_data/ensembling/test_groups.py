import itertools
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angle_data.ensembling.splits import group_sources
from angle_data.text import jaccard, words

NUMBERS = st.tuples(*[st.integers(0, 3)] * 5)
TEMPLATED = st.lists(NUMBERS.map(lambda n: "disk {} at {} percent on {} in {} {}".format(*n)), max_size=40)


@given(TEMPLATED)
def test_group_sources_of_one_template_are_the_groups_of_all_comparisons(texts):
    leader = {text: text for text in sorted(texts)}
    for one, other in itertools.combinations(leader, 2):
        if jaccard(words(one), words(other)) >= 0.75:
            low, high = sorted((leader[one], leader[other]))
            leader = {text: low if name == high else name for text, name in leader.items()}
    assert group_sources({text: [] for text in texts}) == leader


def work(task):
    """Functions called by `task`, those of C included: how long it takes, on any machine."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "templates",
    [
        ["disk {0} of the host web {0}x is at ninety percent of its size since five"],  # 13 of 17 words: near
        ["disk {0} of host {0}x is at ninety percent of its size"],  # 9 of 13: not near
        # Near within the first (7 of 9), not within the second (7 of 11), not across (7 of 10).
        ["disk {0} is full on host a now", "disk {0}x is full on host a now {0}y"],
    ],
)
def test_group_sources_of_one_template_are_not_all_compared(templates):
    def sources(count):
        return {template.format(n): [] for n in range(count) for template in templates}

    few, many = (work(lambda count=count: group_sources(sources(count))) for count in (150, 600))
    assert many < 6 * few  # four times the texts; 16 times the comparisons


def test_group_sources_of_few_words_are_not_all_compared():
    """However many there are, they have the same 400 words, so each word is in ever more of them."""

    def sources(count):
        draw = random.Random(1)
        return {" ".join(draw.choices([f"w{n}" for n in range(400)], k=8)): [] for _ in range(count)}

    few, many = (work(lambda count=count: group_sources(sources(count))) for count in (500, 4000))
    assert many < 10 * few  # eight times the texts; 64 times the comparisons
