"""vLLM's errors for a faulty request."""


class VLLMClientError(Exception):
    """The request is at fault."""


class VLLMValidationError(VLLMClientError):
    """The request cannot be asked."""
