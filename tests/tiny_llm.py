"""Makes tiny random chat models in seconds: LLaMA, GLM-4 and the original ChatGLM layout, for the real vLLM.

They obey a JSON Schema and honour seeds; what they say means nothing. Also how the tests of the engines ask.
"""

import asyncio
import atexit
import functools
import json
import shutil
import signal
import tempfile
import time
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path

import pytest

from angle_data.annotators.base import ChatRequest, Sampling

TEXTS = Path(__file__).parent.parent / "examples" / "cloud-ops" / "texts.jsonl"
VOCABULARY = 1024
CONTEXT = 2048
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


HIDDEN, LAYERS, HEADS = 64, 2, 2
COMMON = {
    "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": 2 * HIDDEN,
    "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
    "head_dim": HIDDEN // HEADS, "max_position_embeddings": CONTEXT, "bos_token_id": 0, "eos_token_id": 2,
    "pad_token_id": 0,
}  # fmt: skip

needs_vllm = pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; run: make vllm")
RAY_MARKS = [
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed; run: make vllm"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # Ray's own: deprecated fields of its settings, and sockets and files that it closes late.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def ray_marks(function):
    """Mark a test that needs Ray."""
    return functools.reduce(lambda marked, mark: mark(marked), RAY_MARKS, function)


def chat_request(content, number=0, *, model="m", **sampling):
    """A request about nothing; `number` is its key."""
    sampling = Sampling(**{"temperature": 1.0, "max_tokens": 12, "seed": 1, **sampling})
    messages = ({"role": "user", "content": content},)
    return ChatRequest(f"{number:032x}", "s", "x", "synonym", messages, model, sampling)


def numbered_requests(count, first=0, **sampling):
    """Requests to the model `tiny` whose prompts and keys are numbers."""
    settings = {"temperature": 0.5, "max_tokens": 64, "seed": 3, **sampling}
    for number in range(first, first + count):
        yield chat_request(f"prompt {number}", number, model="tiny", **settings)


async def collect(annotator, requests, into=None):
    """All outcomes, in the order in which they come; with `into`, there as they come."""
    found = [] if into is None else into
    async with aclosing(annotator.stream(requests)) as stream:
        async for outcome in stream:
            found.append(outcome)
    return found


def ask(annotator, requests, into=None):
    """The same outside of an event loop."""
    return asyncio.run(collect(annotator, requests, into))


def wait_until(condition, limit_s=100.0, program=None, record=None):
    """Wait for another process to bring something about.

    In vain, it fails with what `program` wrote, where its threads stand, and what is in the file `record`.
    """
    end = time.monotonic() + limit_s
    while not condition():
        ended = program is not None and program.poll() is not None
        if ended or time.monotonic() > end:
            noted = record.read_text() if record else ""
            if program is None:
                raise AssertionError(f"waited in vain; noted: {noted}")
            program.send_signal(signal.SIGABRT)  # `started` has it tell where its threads stand
            said = program.communicate()[1]
            raise AssertionError(f"{'ended' if ended else 'waited in vain'}; noted: {noted}; it said: {said}")
        time.sleep(0.005)


# Without compilation and with a small cache, or vLLM takes minutes to start and most of the memory.
ENGINE_OPTIONS = {"enforce_eager": True, "kv_cache_memory_bytes": 64 << 20, "max_model_len": 512}


@functools.cache
def shared_llama() -> Path:
    """A LLaMA for the whole test session."""
    folder = Path(tempfile.mkdtemp(prefix="tiny-llm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return tiny_model("Llama", folder / "llama")


@functools.cache
def shared_engine():
    """An offline engine for the whole session, four prompts a chunk: a start takes a quarter of a minute."""
    from angle_data.annotators.choice import load_annotator
    from angle_data.annotators.spec import AnnotatorSpec

    options = {**ENGINE_OPTIONS, "chunk": 4}
    return load_annotator(AnnotatorSpec("m", "offline", str(shared_llama()), engine_options=options))


def tiny_model(family: str, directory: Path) -> Path:
    """A model of a family: Llama, or Glm4 in the layout of GLM-4-9B-0414."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**COMMON)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    model.to(torch.bfloat16).save_pretrained(directory)
    save_tokenizer(directory)
    return directory


def tiny_chatglm(directory: Path) -> Path:
    """A ChatGLM, in the layout of ChatGLM2-6B and ChatGLM3-6B, which transformers itself has no class for."""
    import torch
    from safetensors.torch import save_file

    config = {
        "architectures": ["ChatGLMModel"], "model_type": "chatglm", "torch_dtype": "bfloat16",
        "padded_vocab_size": VOCABULARY, "hidden_size": HIDDEN, "ffn_hidden_size": 2 * HIDDEN,
        "num_layers": LAYERS, "num_attention_heads": HEADS, "kv_channels": HIDDEN // HEADS,
        "seq_length": CONTEXT, "original_rope": True, "rmsnorm": True, "post_layer_norm": True,
        "add_qkv_bias": True, "multi_query_attention": True, "multi_query_group_num": HEADS,
        "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False,
    }  # fmt: skip
    layer = {
        "input_layernorm.weight": (HIDDEN,), "self_attention.query_key_value.weight": (3 * HIDDEN, HIDDEN),
        "self_attention.query_key_value.bias": (3 * HIDDEN,), "self_attention.dense.weight": (HIDDEN, HIDDEN),
        "post_attention_layernorm.weight": (HIDDEN,), "mlp.dense_h_to_4h.weight": (4 * HIDDEN, HIDDEN),
        "mlp.dense_4h_to_h.weight": (HIDDEN, 2 * HIDDEN),
    }  # fmt: skip
    shapes = {
        "embedding.word_embeddings.weight": (VOCABULARY, HIDDEN),
        **{f"encoder.layers.{n}.{name}": shape for n in range(LAYERS) for name, shape in layer.items()},
        "encoder.final_layernorm.weight": (HIDDEN,),
        "output_layer.weight": (VOCABULARY, HIDDEN),
    }
    generator = torch.Generator().manual_seed(0)
    tensors = {
        f"transformer.{name}": torch.ones(shape, dtype=torch.bfloat16)
        if "layernorm" in name
        else (0.05 * torch.randn(shape, generator=generator)).to(torch.bfloat16)
        for name, shape in shapes.items()
    }
    directory.mkdir(parents=True)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    (directory / "config.json").write_text(json.dumps(config))
    save_tokenizer(directory)
    return directory


def save_tokenizer(directory: Path) -> None:
    """Write a byte-level BPE trained on the demo texts, with a ChatML template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"vocab_size": VOCABULARY, "special_tokens": special, "initial_alphabet": alphabet}
    trainer = trainers.BpeTrainer(show_progress=False, **options)
    texts = [json.loads(line)["text"] for line in TEXTS.read_text().splitlines()]
    tokenizer.train_from_iterator(texts, trainer)
    marks = {"bos_token": special[0], "pad_token": special[0], "eos_token": special[2]}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=CONTEXT, **marks)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(directory)
