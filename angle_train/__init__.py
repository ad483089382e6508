"""Labelled pairs in, fine-tuned embedding model and report out.

Importing this package loads nothing heavy; the modules import torch and sentence-transformers.
"""

__all__: list[str] = []
