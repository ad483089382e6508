"""What several test files share: a tiny random sentence-embedding model that is built in under a second."""

import gc
import json
import logging
import os
import signal
from pathlib import Path

import pytest


def signals_of_children_are_the_usual_ones():
    """Let programs that tests start take SIGINT and SIGHUP, whatever the runner of the tests does with them.

    A background job ignores the one and nohup the other, and a program inherits what is ignored, but no
    handler. With a handler that does nothing they go on being ignored here.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda signum, frame: None)


signals_of_children_are_the_usual_ones()

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

EXAMPLES = Path(__file__).parent.parent / "examples" / "cloud-ops"


@pytest.fixture(scope="session")
def examples() -> Path:
    """The demo corpus shipped with the repository."""
    return EXAMPLES


@pytest.fixture(autouse=True)
def _restored_logging():
    """Undo what a program's `configure_logging` did: its handler would keep a captured, closed stream."""
    logger = logging.getLogger("angle")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:], logger.propagate = handlers, propagate
    logger.setLevel(level)


def wordpiece_vocabulary() -> dict[str, int]:
    """Special tokens, single characters and the words of the demo texts."""
    texts = [json.loads(line)["text"] for line in (EXAMPLES / "texts.jsonl").read_text().splitlines()]
    words = sorted({word for text in texts for word in text.lower().split() if word.isalpha()})
    characters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?-'%/"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{c}" for c in characters)]
    return {token: number for number, token in enumerate(dict.fromkeys([*tokens, *words]))}


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory):
    """Directory of a Sentence Transformers model: a random BERT (2 layers, width 32) and mean pooling."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = wordpiece_vocabulary()
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    checkpoint = tmp_path_factory.mktemp("tiny") / "checkpoint"
    BertModel(config).save_pretrained(checkpoint)
    fast.save_pretrained(checkpoint)
    model = SentenceTransformer(modules=[Transformer(str(checkpoint)), Pooling(32, "mean")], device="cpu")
    directory = checkpoint.parent / "model"
    model.save_pretrained(str(directory), create_model_card=False)
    import angle_train.training.trainer  # with all that it loads

    angle_train.training.arguments.CPU_INFO = Path(os.devnull)  # the same precision on every processor
    gc.freeze()  # every fit ends with a collection, which would look through what the libraries made
    yield directory
    gc.unfreeze()  # or nanobind calls them leaks


@pytest.fixture
def tiny_model(tiny_model_dir):
    """A fresh copy of the tiny model, on the CPU."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(tiny_model_dir), device="cpu")


@pytest.fixture
def hub(monkeypatch):
    """A hub that holds the given rows and remembers what it was asked for."""
    import datasets

    asked = []

    def answer(rows):
        def load_dataset(name, config=None, *, split, revision):
            asked.append((name, config, split, revision))
            return datasets.Dataset.from_list(rows)

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        return asked

    return answer
