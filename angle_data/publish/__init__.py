"""Publishing: labelled pairs as a data set that the ecosystem's own tools open."""

__all__: list[str] = []
