"""The annotators: engines that answer chat requests, short model names, and the choice between them.

Add an engine in `registry`, a model name in `models`.
"""

from __future__ import annotations

from angle_data.annotators.choice import choose_annotator
from angle_data.annotators.models import MODELS, ModelAlias
from angle_data.annotators.registry import ANNOTATORS, load_annotator
from angle_data.annotators.spec import AnnotatorSpec, Dialect, EngineConfig

__all__ = [
    "ANNOTATORS",
    "MODELS",
    "AnnotatorSpec",
    "Dialect",
    "EngineConfig",
    "ModelAlias",
    "choose_annotator",
    "load_annotator",
]
