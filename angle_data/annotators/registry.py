"""The registry of engines; imports an engine only on use.

Add an engine: a module with a class that takes an `AnnotatorSpec` and has `stream`, and a line in ANNOTATORS.
`choice` takes an engine that it does not know for one that asks a server.
"""

from __future__ import annotations

from typing import cast

from angle_data.annotators.base import Annotator
from angle_data.annotators.spec import AnnotatorSpec
from angle_data.resources import load_object

ANNOTATORS: dict[str, str] = {
    "server": "angle_data.annotators.server:OpenAIServer",
    "batch": "angle_data.annotators.batch:OpenAIBatch",
    "local": "angle_data.annotators.loaded.llamacpp:LlamaLocal",
    "offline": "angle_data.annotators.loaded.vllm_offline:VLLMOffline",
    "ray": "angle_data.annotators.loaded.ray_offline:RayOffline",
    "recorded": "angle_data.annotators.recorded:Recorded",
}
"""Engine name -> "module:Class"."""


def load_annotator(spec: AnnotatorSpec) -> Annotator:
    """Import the engine of `spec` and build the annotator.

    Raises:
        InputError: The recorded replies cannot be used.
        MissingExtraError: The engine needs a package that is not installed.
        CredentialsError: The variable that should hold the API key is not set.
    """
    return cast(Annotator, load_object(ANNOTATORS[spec.engine])(spec))
