"""From domain texts to raw LLM replies to candidate sentences: prompts, texts, journal, parsing, the run."""

__all__: list[str] = []
