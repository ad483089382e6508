"""vLLM's errors for a faulty request."""

import os

if "FAKE_VLLM_OLD" in os.environ:
    raise ImportError("vLLM had no errors of its own")


class VLLMClientError(Exception):
    """The request is at fault."""


class VLLMValidationError(VLLMClientError):
    """The request cannot be asked."""
