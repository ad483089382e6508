"""What a run folder may spend: token counts, the account of what was spent, and what the limits still allow.

Tokens are guessed from the length of a text; the few of chat templates count as a constant a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from angle_data.annotators.base import ChatRequest, Held
from angle_data.annotators.models import Price
from angle_data.labelling.asking.journal import Journal, Tokens

_CHARS_PER_TOKEN = 4.0
_WIDE_PER_TOKEN = 1.5
_TEMPLATE_TOKENS = 8.0
# Replies after which the mean of what was counted is trusted; until then each may be as long as allowed.
_ENOUGH = 8
# What is in flight may turn out longer than the mean.
_MARGIN = 1.1
_SMOOTHING = 0.02
_LONG_PROMPT = 8_000  # characters
READ_IN_PART = (
    "%s to prompts that the server read only in part, without a word; they are set aside (prompt_cut): raise "
    "its context (Ollama: num_ctx), or leave out long texts; `angle-data probe` shows how much it reads"
)
"""What is said of those, with their number."""


def estimate(text: str) -> float:
    """Guess the tokens of a text from its length: four characters a token, one and a half beyond Latin."""
    narrow = len(text) if text.isascii() else sum(character < "\u0370" for character in text)
    return narrow / _CHARS_PER_TOKEN + (len(text) - narrow) / _WIDE_PER_TOKEN


def is_read_in_part(request: ChatRequest, row: Mapping[str, Any]) -> bool:
    """Whether a server has read only part of a long prompt, without a word, by the tokens that it counts.

    As Ollama does beyond its `num_ctx`. No usual tokenizer makes fewer tokens than one for eight letters or
    digits, beyond Latin for four. Short prompts are not judged: servers may leave out what they remember.
    """
    usage = row.get("usage") or {}
    count = usage.get("prompt_tokens")
    length = sum(len(message["content"]) for message in request.messages)
    if not isinstance(count, int) or usage.get("estimated") or length < max(_LONG_PROMPT, 4 * count):
        return False
    signs = [sign for message in request.messages for sign in message["content"] if sign.isalnum()]
    narrow = sum(sign < "\u0370" for sign in signs)
    return narrow / 8 + (len(signs) - narrow) / 4 > count


def guess_tokens(request: ChatRequest, reply_chars: float) -> Tokens:
    """Guess what a request takes before any reply is known; the reply is bounded by its `max_tokens`."""
    prompt = sum(estimate(message["content"]) + _TEMPLATE_TOKENS for message in request.messages)
    reply = min(reply_chars / _CHARS_PER_TOKEN + _TEMPLATE_TOKENS, request.sampling.max_tokens)
    return Tokens(prompt, reply)


def usd_of(price: Price | None, tokens: Tokens) -> float | None:
    """Return what tokens cost, None when no price is known."""
    return None if price is None else price.of(tokens.prompt, tokens.completion)


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run folder took in all its sessions.

    `estimated` are the tokens that no service has counted. `usd` is None when no price is known, or nothing
    is to be `paid`.
    """

    tokens: Tokens
    estimated: float
    usd: float | None
    paid: bool

    def counts(self) -> dict[str, Any]:
        """Return it as the entries of `--json`; the first three counts are those of run.json."""
        return {
            "tokens": {
                "prompt_tokens": self.tokens.prompt,
                "completion_tokens": self.tokens.completion,
                "total_tokens": self.tokens.total,
                "estimated_tokens": self.estimated,
            },
            "usd": self.usd,
        }

    def __str__(self) -> str:
        """Say it to people."""
        tokens = self.tokens
        told = f"{tokens.total:,.0f} tokens ({tokens.prompt:,.0f} of prompts, "
        told += f"{tokens.completion:,.0f} of replies"
        if self.estimated:
            part = "" if self.estimated == tokens.total else f"{self.estimated:,.0f} of them "
            told += f"; {part}estimated, the service does not count them"
        if self.usd is not None:
            return f"{told}), {'about ' if self.estimated else ''}{self.usd:,.4f} USD"
        return f"{told}), " + ("price unknown: --price IN,OUT gives it" if self.paid else "nothing to pay")


class Ledger:
    """Counts tokens and money, and reserves what requests in flight are expected to take.

    What was spent is the journal's own count, so it grows with every row. `max_usd` and `max_tokens_total`
    bound the whole journal, not this session alone. Until a few replies have come, a request counts with the
    longest reply it may get, afterwards with what replies take on average, and so do those in flight: what is
    learnt holds for them, too. So the limits can be passed by no more than the requests in flight at the end,
    as many as --concurrency, take beyond the average. A service that counts more than it was asked for (a
    hidden prompt, thoughts beside --max-tokens) shows it in the few requests that go first.
    """

    def __init__(
        self, journal: Journal, price: Price | None, max_usd: float | None, max_tokens_total: int | None
    ) -> None:
        self.journal = journal
        self.price = price
        self._max_usd, self._max_tokens = max_usd, max_tokens_total
        self._reserved: dict[str, tuple[Tokens, int]] = {}  # what was guessed, and the longest reply
        self._in_flight = self._held = Tokens()  # guesses
        self._longest_in_flight = 0
        self._ratio = Tokens()  # of what replies took to what was guessed for them
        self._replies = 0

    def hold(self, held: Held) -> None:
        """Count requests that earlier sessions have paid for, until the next call; they are not reserved."""
        self._held = Tokens(held.prompt_tokens, held.completion_tokens)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self._max_usd is not None or self._max_tokens is not None

    def reserve(self, request: ChatRequest, guess: Tokens) -> bool:
        """Count a request as in flight, unless it does not fit under the limits beside all on its way."""
        if not self.is_limited:
            return True
        longest = request.sampling.max_tokens
        in_flight = self._expected(self._in_flight, self._longest_in_flight, _MARGIN)
        total = self.journal.spent + self._held + in_flight + self._expected(guess, longest)
        if self._max_tokens is not None and total.total > self._max_tokens:
            return False
        usd = usd_of(self.price, total)
        if self._max_usd is not None and usd is not None and usd > self._max_usd:
            return False
        self._reserved[request.key] = guess, longest
        self._in_flight += guess
        self._longest_in_flight += longest
        return True

    def settle(self, key: str, guess: Tokens, usage: Mapping[str, int]) -> None:
        """Take a request out of flight, and learn from what its reply took; the journal counts that."""
        reserved, longest = self._reserved.pop(key, (Tokens(), 0))
        self._in_flight += reserved * -1
        self._longest_in_flight -= longest
        if "prompt_tokens" in usage and "completion_tokens" in usage:
            self._replies += 1
            rate = max(1.0 / self._replies, _SMOOTHING)
            seen = Tokens(
                usage["prompt_tokens"] / max(guess.prompt, 1.0),
                usage["completion_tokens"] / max(guess.completion, 1.0),
            )
            self._ratio = self._ratio * (1 - rate) + seen * rate

    def _expected(self, guess: Tokens, longest: int, margin: float = 1.0) -> Tokens:
        """Correct the guess of requests whose replies may take `longest` in all by what replies took.

        With few replies, rather too much than too little. A service may count more than `longest`.
        """
        if not self._replies:
            return Tokens(guess.prompt * margin, longest)
        prompt = guess.prompt * self._ratio.prompt * margin
        average = guess.completion * self._ratio.completion
        if self._replies < _ENOUGH:
            return Tokens(prompt * (1.0 + 1.0 / self._replies), max(longest, average))
        return Tokens(prompt, max(min(average * margin, longest), average))

    def __str__(self) -> str:
        """Name the limits that are set, as options, and what the run folder took so far."""
        limits = {"--max-usd": self._max_usd, "--max-tokens-total": self._max_tokens}
        named = " and ".join(f"{name} {most}" for name, most in limits.items() if most is not None)
        return f"{named}: {self.spent_so_far()}"

    def spending(self, *, paid: bool) -> Spending:
        """Return what the run folder took so far; `paid`: its annotator takes money."""
        journal = self.journal
        return Spending(journal.spent, journal.estimated, usd_of(self.price, journal.spent), paid)

    def spent_so_far(self) -> str:
        """Say what the run folder took so far."""
        usd = usd_of(self.price, self.journal.spent)
        money = "" if usd is None else f"{usd:.4f} USD, "
        return f"spent {money}{self.journal.spent.total:,} tokens"
