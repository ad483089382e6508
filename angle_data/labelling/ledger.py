"""The account of a run folder: what its replies took, what is in flight, and what the limits still allow.

Pure arithmetic: asks nobody and reads no files.
"""

from __future__ import annotations

from dataclasses import dataclass

from angle_data.annotators.base import ChatRequest, Held, Reply
from angle_data.annotators.models import Price
from angle_data.labelling.journal import Spent

# Replies after which the mean of what was counted is trusted; until then each may be as long as allowed.
_ENOUGH = 8
# What is in flight may turn out longer than the mean.
_MARGIN = 1.1
_SMOOTHING = 0.02


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a request: of its prompt, and of its reply."""

    prompt: float
    completion: float


class Ledger:
    """Counts tokens and money, and reserves what requests in flight are expected to take.

    `spent` is the journal's own count, so it grows with every row. `max_usd` and `max_tokens_total` bound the
    whole journal, not this session alone. Until a few replies have come, a request counts with the longest
    reply it may get, afterwards with what replies take on average: the limits can be passed by as much as
    those in flight at the end are longer than those before.
    """

    def __init__(
        self, spent: Spent, price: Price | None, max_usd: float | None, max_tokens_total: int | None
    ) -> None:
        self.spent = spent
        self.price = price
        self._max_usd, self._max_tokens = max_usd, max_tokens_total
        self._before = (spent.rows, spent.prompt_tokens, spent.completion_tokens)
        self._reserved: dict[str, Tokens] = {}
        self._in_flight = Tokens(0.0, 0.0)
        self._held = Tokens(0.0, 0.0)
        self._scale: Tokens | None = None
        self._replies = 0

    @property
    def limited(self) -> bool:
        """Whether any limit is set; without one nothing needs to be reserved."""
        return self._max_usd is not None or self._max_tokens is not None

    def hold(self, held: Held) -> None:
        """Count requests that earlier sessions have paid for, until the next call; they are not reserved."""
        self._held = Tokens(held.prompt_tokens, held.completion_tokens)

    def affords(self, request: ChatRequest, guess: Tokens) -> bool:
        """Whether a request with this first guess fits under the limits beside all that is on its way."""
        if not self.limited:
            return True
        expected = self._expected(request, guess)
        prompt = self.spent.prompt_tokens + self._in_flight.prompt + self._held.prompt + expected.prompt
        completion = (
            self.spent.completion_tokens
            + self._in_flight.completion
            + self._held.completion
            + expected.completion
        )
        if self._max_tokens is not None and prompt + completion > self._max_tokens:
            return False
        if self._max_usd is None or self.price is None:
            return True
        return self.price.of(prompt, completion) <= self._max_usd

    def reserve(self, request: ChatRequest, guess: Tokens) -> None:
        """Count a request as in flight."""
        expected, most = self._expected(request, guess), request.sampling.max_tokens
        reserved = Tokens(expected.prompt * _MARGIN, min(expected.completion * _MARGIN, most))
        self._reserved[request.key] = reserved
        self._in_flight = Tokens(
            self._in_flight.prompt + reserved.prompt, self._in_flight.completion + reserved.completion
        )

    def settle(self, key: str, guess: Tokens, reply: Reply | None) -> None:
        """Take a request out of flight, if it was reserved, and learn from its reply, None when it failed.

        What the reply took is counted by the journal, in `spent`.
        """
        if not self.limited:
            return
        reserved = self._reserved.pop(key, None)
        if reserved is not None:
            self._in_flight = Tokens(
                self._in_flight.prompt - reserved.prompt, self._in_flight.completion - reserved.completion
            )
        usage = reply.usage if reply is not None else {}
        if "prompt_tokens" in usage and "completion_tokens" in usage:
            self._learn(guess, usage["prompt_tokens"], usage["completion_tokens"])

    def _learn(self, guess: Tokens, prompt: int, completion: int) -> None:
        """Follow the ratio of what requests take to what was guessed for them."""
        self._replies += 1
        seen = Tokens(prompt / max(guess.prompt, 1.0), completion / max(guess.completion, 1.0))
        if self._scale is None:
            self._scale = seen
            return
        rate = max(1.0 / self._replies, _SMOOTHING)
        self._scale = Tokens(
            self._scale.prompt + rate * (seen.prompt - self._scale.prompt),
            self._scale.completion + rate * (seen.completion - self._scale.completion),
        )

    def _expected(self, request: ChatRequest, guess: Tokens) -> Tokens:
        """Correct a first guess by what replies took; with few replies, rather too much than too little."""
        most = request.sampling.max_tokens
        if self._scale is None:
            return Tokens(guess.prompt, most)
        prompt = guess.prompt * self._scale.prompt
        if self._replies < _ENOUGH:
            return Tokens(prompt * (1.0 + 1.0 / self._replies), most)
        return Tokens(prompt, min(guess.completion * self._scale.completion, most))

    def usd(self) -> float | None:
        """Return what the whole journal cost at the price of now, None when no price is known."""
        if self.price is None:
            return None
        return self.price.of(self.spent.prompt_tokens, self.spent.completion_tokens)

    def of_this_run(self) -> tuple[int, int, int]:
        """Return the replies, prompt tokens and reply tokens since the start."""
        rows, prompt, completion = self._before
        return (
            self.spent.rows - rows,
            self.spent.prompt_tokens - prompt,
            self.spent.completion_tokens - completion,
        )

    def limit_text(self) -> str:
        """Name the limits that are set, as options."""
        limits = []
        if self._max_usd is not None:
            limits.append(f"--max-usd {self._max_usd:g}")
        if self._max_tokens is not None:
            limits.append(f"--max-tokens-total {self._max_tokens}")
        return " and ".join(limits)

    def spent_text(self) -> str:
        """Say what the run folder took so far."""
        usd = self.usd()
        money = "" if usd is None else f"{usd:.4f} USD, "
        return f"{money}{self.spent.tokens:,} tokens"
