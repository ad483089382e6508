"""Tiny random checkpoints of the families that users train: plain transformers directories."""

from pathlib import Path

from tiny_llm import COMMON, VOCABULARY, save_tokenizer

ENCODERS = ("bert", "roberta", "modernbert")
CAUSAL = ("llama", "mistral", "qwen2", "qwen3")
FAMILIES = (*ENCODERS, *CAUSAL)
ROBERTA_POSITIONS = 66  # two of them before the first token, as in the real one's 514

_SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64}
_SMALL |= {"num_hidden_layers": 3, "num_attention_heads": 2}


def checkpoint(family: str, directory: Path, *, pad: bool = True) -> Path:
    """Write a random model of a family, as the family's own checkpoints are written."""
    import torch
    import transformers as t

    save_tokenizer(directory)
    torch.manual_seed(0)
    if family in CAUSAL:
        config_class = getattr(t, f"{family.capitalize()}Config")
        model_class = getattr(t, f"{family.capitalize()}ForCausalLM")
        options = {**COMMON, **_SMALL, "num_key_value_heads": 2, "head_dim": 16}
        model_class(config_class(**options, tie_word_embeddings=False)).save_pretrained(directory)
        tokenizer = t.AutoTokenizer.from_pretrained(directory)
        if not pad:
            tokenizer.pad_token = None
            tokenizer.save_pretrained(directory)
        return directory
    _mark_ends(t.AutoTokenizer.from_pretrained(directory)).save_pretrained(directory)
    (directory / "chat_template.jinja").unlink()  # encoders are no chat models
    special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    if family == "bert":
        model = t.BertModel(t.BertConfig(**_SMALL, max_position_embeddings=64, pad_token_id=1))
    elif family == "roberta":
        config = t.RobertaConfig(**_SMALL, **special, max_position_embeddings=ROBERTA_POSITIONS)
        model = t.RobertaModel(config)
    elif family == "xlm-roberta":
        config = t.XLMRobertaConfig(**_SMALL, **special, max_position_embeddings=ROBERTA_POSITIONS)
        model = t.XLMRobertaModel(config)
    elif family == "mpnet":
        model = t.MPNetModel(t.MPNetConfig(**_SMALL, **special, max_position_embeddings=ROBERTA_POSITIONS))
    elif family == "distilbert":
        sizes = {"vocab_size": VOCABULARY, "dim": 32, "hidden_dim": 64, "n_layers": 3, "n_heads": 2}
        config = t.DistilBertConfig(**sizes, max_position_embeddings=64, pad_token_id=1)
        model = t.DistilBertModel(config)
    else:
        markers = {"cls_token_id": 0, "sep_token_id": 2, "local_attention": 16}
        config = t.ModernBertConfig(**_SMALL, **special, **markers, max_position_embeddings=8192)
        model = t.ModernBertModel(config)
    model.save_pretrained(directory)
    return directory


def _mark_ends(tokenizer):
    """An encoder's tokenizer: <|endoftext|> opens and <|im_end|> ends a text, <|im_start|> pads."""
    from tokenizers.processors import TemplateProcessing

    first, pad, last = tokenizer.convert_ids_to_tokens([0, 1, 2])
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B {last}",
        special_tokens=[(first, 0), (last, 2)],
    )
    tokenizer.pad_token, tokenizer.chat_template = pad, None
    tokenizer.cls_token, tokenizer.sep_token = first, last
    tokenizer.model_max_length = int(1e30)  # as in checkpoints that do not say
    return tokenizer
