"""`--max-usd` and what is spent in the end, however a service counts, with 64 requests in flight."""

import random

import pytest
from fake_openai import FakeOpenAI, completion
from labelling_runs import config_of, run_json, write_texts

from angle_data.errors import StoppedError
from angle_data.labelling.label import label

MAX_TOKENS, CONCURRENCY = 100, 64
SENTENCES = "1. The machine is gone from the group.\n2. It is no longer a member of the group."
IN, OUT = 1.0, 4.0  # USD a million tokens


def usage(way, prompt, said, thought):
    """The tokens of a reply by a way of counting, and what the service bills: prompt and reply."""
    told = {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}
    if way == "within":  # OpenAI: thoughts are part of the reply, and of --max-tokens
        return told, (prompt, said)
    details = {"completion_tokens_details": {"reasoning_tokens": thought}}
    if way == "beside":  # xAI
        return told | details | {"total_tokens": prompt + said + thought}, (prompt, said + thought)
    if way == "in the total":  # Gemini
        return told | {"total_tokens": prompt + said + thought}, (prompt, said + thought)
    if way == "Anthropic":
        return {"input_tokens": prompt, "output_tokens": said}, (prompt, said)
    return told | {"prompt_tokens": prompt + 5000}, (prompt + 5000, said)  # "hidden": a prompt of its own


@pytest.mark.parametrize("budget", [0.05, 0.2])
@pytest.mark.parametrize("way", ["within", "beside", "in the total", "Anthropic", "hidden"])
def test_the_limit_is_passed_by_no_more_than_what_is_in_flight(tmp_path, way, budget):
    write_texts(tmp_path, 1500)
    draw, bills = random.Random(way), []

    def answer(body):
        told, (prompt, reply) = usage(way, 120, draw.randint(20, MAX_TOKENS), draw.randint(100, 400))
        bills.append((IN * prompt + OUT * reply) / 1e6)
        return completion(body, SENTENCES) | {"usage": told}

    with FakeOpenAI(answer, latency_s=0.01) as server:
        asked = {"prompts": "paper", "price": (IN, OUT), "max_tokens": MAX_TOKENS, "concurrency": CONCURRENCY}
        with pytest.raises(StoppedError, match="raise the limit"):
            label(config_of(tmp_path, server, **asked, max_usd=budget))
    spent = sum(bills)
    assert run_json(tmp_path)["usd"] == pytest.approx(spent)
    print(f"{way}, {budget}: {spent:.4f}")  # with -s: the table of the docs
    # Beyond the average, which was counted: the longest reply in place of it, for all that is in flight.
    longest = MAX_TOKENS + (400 if way in ("beside", "in the total") else 0)
    assert spent <= budget + CONCURRENCY * longest * OUT / 1e6
    assert spent > 0.8 * budget
