"""How good a model is on labelled pairs, how sure that is, and whether another one is better."""

__all__: list[str] = []
