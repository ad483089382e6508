"""Models with random weights, made on the spot: the shapes of BERT-base, ModernBERT-base and LLaMA-7B.

Weights are random and tokenizers trained on the demo's texts, so no figure of quality means anything; time
and memory do not depend on the values.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from setting import Setting, demo_texts

CONTEXT = 512
PROMPT = 'Summarize sentence "{text}" in one word:"'
"""The papers', for causal language models."""

_VOCABULARY = 2048  # of the tokenizer; the embeddings have the rows of the real model
_TINY = {
    "vocab_size": _VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def bert(setting: Setting) -> Path:
    """Return a folder with a model of BERT-base shape: 12 layers, width 768, 110 M weights in fp32."""
    return _once(setting, "bert", _make_bert)


def modernbert(setting: Setting) -> Path:
    """Return a folder with a model of ModernBERT-base shape: 22 layers, width 768, 149 M weights in fp32."""
    return _once(setting, "modernbert", _make_modernbert)


def llama(setting: Setting) -> Path:
    """Return a folder with a model of LLaMA-7B shape in bf16, of `setting.llama_layers` layers.

    Width 4096, 32 heads, 202 M weights a layer. It is also a chat model, for vLLM.
    """
    return _once(setting, f"llama-{setting.llama_layers}", _make_llama)


def flop_per_token(folder: Path, length: float, *, frozen: bool = False) -> float:
    """Return the floating-point operations that training takes for one token of a text of `length` tokens.

    Each weight of a linear layer takes 2 forward and 4 backward, a frozen one 2 backward, since only what
    lies before it gets a gradient; attention's two products take 4 times width and length forward and twice
    that backward in each layer. The rest is not counted.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = AutoModel.from_config(config)
    layers = (module for module in model.modules() if isinstance(module, torch.nn.Linear))
    weights = sum(layer.weight.numel() for layer in layers)
    attention = 12 * config.num_hidden_layers * config.hidden_size * length
    return (4 if frozen else 6) * weights + attention


def _once(setting: Setting, name: str, make: Callable[[Setting, Path], None]) -> Path:
    """Return the folder of a model, made when the first part asks for it and whole whenever it is there."""
    folder = setting.work / "models" / name
    if not folder.exists():
        begun = folder.with_name(f"{name}.begun")
        shutil.rmtree(begun, ignore_errors=True)
        begun.mkdir(parents=True)
        make(setting, begun)
        begun.rename(folder)
    return folder


def _make_bert(setting: Setting, folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    shape = _TINY | {"max_position_embeddings": CONTEXT} if setting.tiny else {}
    BertModel(BertConfig(**shape, pad_token_id=1)).save_pretrained(folder)
    _save_tokenizer(folder, encoder=True)


def _make_modernbert(setting: Setting, folder: Path) -> None:
    import torch
    from transformers import ModernBertConfig, ModernBertModel

    torch.manual_seed(0)
    shape = _TINY | {"local_attention": 16} if setting.tiny else {}
    special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
    ModernBertModel(ModernBertConfig(**shape, **special)).save_pretrained(folder)
    _save_tokenizer(folder, encoder=True)


def _make_llama(setting: Setting, folder: Path) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "vocab_size": 32_000,
        "hidden_size": 4096,
        "intermediate_size": 11_008,
        "num_attention_heads": 32,
        "num_hidden_layers": setting.llama_layers,
    }
    special = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 2048}
    config = LlamaConfig(**(_TINY if setting.tiny else shape), **special, dtype=torch.bfloat16)
    # A billion random numbers take long on a CPU, and weights in fp32 twice the memory.
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(setting.device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(default)
    model.save_pretrained(folder)
    _save_tokenizer(folder, encoder=False)


def _save_tokenizer(folder: Path, *, encoder: bool) -> None:
    """Write a byte-level BPE of the demo's texts, with a ChatML template for causal models."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    first, pad, last = special = ["<|im_start|>", "<|pad|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(demo_texts(), trainer)
    marks = {"bos_token": first, "pad_token": pad, "eos_token": last}
    if encoder:
        marks |= {"cls_token": first, "sep_token": last}
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}", special_tokens=[(first, 0), (last, 2)]
        )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=CONTEXT, **marks)
    if not encoder:
        fast.chat_template = _TEMPLATE
    fast.save_pretrained(folder)
