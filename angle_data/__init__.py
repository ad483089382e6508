"""Texts in, labelled sentence pairs out: LLM annotation, ensembling and dataset publishing.

Never imports torch. The public names live in the modules; this package exports none of its own.
"""

__all__: list[str] = []
