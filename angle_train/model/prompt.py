"""The prompt around every text, kept in the model so that a saved one applies it by itself.

Sentence Transformers takes prompts as prefixes. One with text after its slot too, such as the papers'
`Summarize sentence "{text}" in one word:"`, becomes the chat template of the model's tokenizer: native to the
saved model, and its end survives the cutting of long texts, which a causal model's last token depends on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from angle_data.errors import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer

TEXT_SLOT = "{text}"
"""Where the text goes in a prompt; a prompt without it stands before the text."""

_PROMPT_NAME = "angle"


def set_prompt(model: SentenceTransformer, prompt: str) -> None:
    """Make `model` put `prompt` around every text, now and after it is saved; nothing if it is empty.

    A prompt is a prefix, or a template with `{text}` once in it. One with text after its slot replaces the
    tokenizer's chat template, and prompts of the model's own no longer apply.

    Raises:
        InputError: The slot stands there more than once, or the model cannot take a template.
    """
    if not prompt:
        return
    before, slot, after = prompt.partition(TEXT_SLOT)
    if TEXT_SLOT in after:
        raise InputError(f"prompt {prompt!r} has {TEXT_SLOT} more than once; write it once")
    if not slot or not after:
        model.prompts[_PROMPT_NAME] = before
        model.default_prompt_name = _PROMPT_NAME
        return
    transformer = _transformer(model)
    if transformer is None or transformer.tokenizer is None:
        raise InputError(f"prompt {prompt!r} needs a transformer; this model takes only a prefix")
    opening, closing = _special_tokens(transformer.tokenizer)
    # Strings of the template language have the escapes of JSON.
    head, tail = (json.dumps(part, ensure_ascii=False) for part in (opening + before, after + closing))
    # The last message: a prompt given to `encode` would stand before it as a system message.
    template = f"{{{{ {head} }}}}{{{{ messages[-1]['content'] }}}}{{{{ {tail} }}}}"
    transformer.tokenizer.chat_template = template
    text: Any = transformer.modality_config["text"]
    _set_modalities(transformer, {"text": text, "message": {**text, "format": "flat"}})
    model.default_prompt_name = None


def has_template(model: SentenceTransformer) -> bool:
    """Return whether the model renders every text through a chat template."""
    transformer = _transformer(model)
    return transformer is not None and "message" in transformer.modality_config


def use_plain_text(model: SentenceTransformer) -> bool:
    """Keep `model` from rendering texts as chat messages; return whether it would have."""
    transformer = _transformer(model)
    if transformer is None or not has_template(model) or "text" not in transformer.modality_config:
        return False
    text: Any = transformer.modality_config["text"]
    _set_modalities(transformer, {"text": text})
    return True


def _transformer(model: SentenceTransformer) -> Transformer | None:
    from sentence_transformers.base.modules import Transformer

    first = next(iter(model), None)
    return first if isinstance(first, Transformer) else None


def _set_modalities(transformer: Transformer, modalities: dict[Any, Any]) -> None:
    from sentence_transformers.base.modality import InputFormatter

    transformer.modality_config = modalities
    transformer.input_formatter = InputFormatter(
        model_type=transformer.config.model_type,
        message_format="flat" if "message" in modalities else "auto",
        processor=transformer.processor,
    )
    transformer.input_formatter.supported_modalities = list(modalities)


def _special_tokens(tokenizer: Any) -> tuple[str, str]:
    """Return what the tokenizer puts before and after a text; chat templates have to say it themselves."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    starts = [i for i in range(len(whole) - len(bare) + 1) if whole[i : i + len(bare)] == bare]
    if not starts:
        raise InputError("the special tokens of this tokenizer cannot be found; end the prompt with {text}")
    tokens = tokenizer.convert_ids_to_tokens(whole)
    return "".join(tokens[: starts[0]]), "".join(tokens[starts[0] + len(bare) :])
