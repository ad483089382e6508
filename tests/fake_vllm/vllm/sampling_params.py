"""vLLM's sampling parameters, as far as they are set."""

from dataclasses import dataclass
from types import SimpleNamespace


@dataclass
class SamplingParams:
    """Fields as in vLLM."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 16
    seed: int | None = None
    structured_outputs: dict | None = None


def StructuredOutputsParams(json, disable_any_whitespace):
    """Return the two fields as a dictionary, which can be recorded."""
    return vars(SimpleNamespace(json=json, disable_any_whitespace=disable_any_whitespace))
