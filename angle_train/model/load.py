"""Loads a model to be trained or evaluated, from a directory or from the hub, and finishes a trained one.

Only modules that Sentence Transformers brings itself: code from a model repository is never run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angle_data.console import at_level
from angle_data.errors import InputError, MissingExtraError
from angle_data.jsonl import loads
from angle_train.model.adapters import (
    add_adapters,
    copy_adapters,
    four_bit_settings,
    has_adapters,
    merge_adapters,
)
from angle_train.model.admission import admit, check_cosine
from angle_train.model.pooling import is_causal, set_pooling
from angle_train.model.prompt import set_prompt, use_plain_text
from angle_train.model.roles import (
    NO_ROLES,
    RolePrompts,
    input_modules,
    set_role_prompts,
)
from angle_train.model.routes import prepare_routes
from angle_train.recipe import CHECKPOINT, BackboneConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer

_SAYS_NOTHING = ("model", "models", "backbone", "base", "checkpoint", "tuned", "final", "output", "runs")
log = logging.getLogger("angle.backbones")

_EXTRA = ("accelerate", "datasets", "peft", "sentence_transformers", "torch", "transformers")
# A row of what transformers logs of weights that it draws at random; without those that no embedding needs.
_LACKING = re.compile(r"^(?![^|\n]*pooler)([^|\n]+?) *\|[^|\n]*MISSING", re.MULTILINE)
# What loading a model reads from its directory, apart from what this toolkit puts beside it.
_MODEL_FILES = (".safetensors", ".bin", ".json", ".txt", ".model", ".jinja")
_ADAPTER_FILE = "adapter_config.json"  # of a folder with adapters alone, as peft saves it
_NOT_READ = {"onnx", "openvino", "checkpoints", "report.json"}


def check_training_extra(feature: str) -> None:
    """Raise a MissingExtraError that names `feature` unless the `train` extra is there; imports nothing."""
    if any(importlib.util.find_spec(name) is None for name in _EXTRA):
        raise MissingExtraError(feature, "train")


def check_device(device: str | None, *, numbered: bool = True) -> None:
    """Raise an InputError unless torch can compute on `device`: `cpu`, `cuda`, `mps`, or None for the best.

    With `numbered` also one GPU as `cuda:1`; a training takes the first that it sees.
    """
    if device is None:
        return
    import torch

    gpus = torch.cuda.device_count()
    there = ["cpu", *(["cuda"] if gpus else []), *(["mps"] if torch.backends.mps.is_available() else [])]
    if numbered:
        there += [f"cuda:{number}" for number in range(gpus)]
    if device not in there:
        choose = "; CUDA_VISIBLE_DEVICES chooses the GPU" if gpus and not numbered else ""
        raise InputError(
            f"--device {device}: torch finds no such device; available: {', '.join(there)}{choose}"
        )


def backbone_identity(id_or_path: str) -> str:
    """Return a name for a model that is the same on every machine: `NAME@DIGEST`, or the hub id.

    DIGEST is the start of the SHA-256 over weights, settings and vocabulary, so that another model put into
    the same directory is another backbone. Reads the whole directory.
    """
    root = Path(id_or_path)
    if not root.is_dir():
        return id_or_path
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        other = any(part.startswith(".") for part in inside.parts) or not _NOT_READ.isdisjoint(inside.parts)
        if path.suffix in _MODEL_FILES and path.is_file() and not other:
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{inside.as_posix()}\0{content}\n".encode())
    if (root / _ADAPTER_FILE).is_file():
        base = loads((root / _ADAPTER_FILE).read_text(encoding="utf-8")).get("base_model_name_or_path")
        digest.update(backbone_identity(str(base)).encode())
    return f"{root.resolve().name}@{digest.hexdigest()[:12]}"


def hub_id(id_or_path: str) -> str | None:
    """Return a model's id on the hub, also of a folder of the hub's cache; None for other directories."""
    path = Path(id_or_path)
    if not path.is_dir():
        return id_or_path
    in_cache = re.search(r"/models--([^/]+)--([^/]+)/snapshots/", path.resolve().as_posix() + "/")
    return f"{in_cache[1]}/{in_cache[2]}" if in_cache else None


def telling_name(id_or_path: str, *, above: bool = True) -> str | None:
    """Return what to call a model whose folder's name says nothing, such as `model`; None where it does.

    It is the heading of the model's card, or else the name of the folder `above`, unless that is the user's.
    """
    root = Path(id_or_path).resolve()
    if not root.is_dir() or root.name.lower() not in _SAYS_NOTHING:
        return None
    card = root / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    heading = re.search(r"^# +([\w./-]{1,80})[ \t]*$", text, re.M)
    if heading and heading[1].lower() not in _SAYS_NOTHING:
        return heading[1]
    parent = root.parent
    says_nothing = parent.name.lower() in {"", *_SAYS_NOTHING} or parent in (Path.home(), Path.home().parent)
    return parent.name if above and not says_nothing else None


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silence the progress bars and the chatter of transformers and datasets inside the block."""
    import datasets
    from transformers.utils import logging as transformers_logging

    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    datasets.disable_progress_bars()
    try:
        with at_level(logging.ERROR, "sentence_transformers", "transformers", "datasets"):
            yield
    finally:
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
        datasets.enable_progress_bars()


def load_backbone(
    id_or_path: str,
    max_seq_length: int | None = None,
    device: str | None = None,
    config: BackboneConfig | None = None,
) -> SentenceTransformer:
    """Load a Sentence Transformers model, or a plain transformers checkpoint, as it is.

    A plain checkpoint is given plain text, whatever chat template it has, and averaged over its tokens, one
    of a causal language model read at its last token; its vocabulary head is not loaded.

    Args:
        id_or_path: A local directory, or an id on the Hugging Face hub.
        max_seq_length: Tokens per text; default the checkpoint's own.
        device: `cpu`, `cuda` …; default the best there is.
        config: Says whether the weights are loaded in 4 bits. The rest is for `load_for_training`.

    Raises:
        InputError: There is no such directory or id, the hub cannot be reached, it is no embedding model,
            has no positions for `max_seq_length` tokens, or cannot be loaded as asked for.
        MissingExtraError: torch, sentence-transformers or bitsandbytes is not installed.
    """
    check_training_extra("loading a model")
    config = config or BackboneConfig()
    cached_only = check_model(id_or_path)
    options = four_bit_settings(device) if config.quantization == "4bit" else {}
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import load_file_path

    with quiet_libraries(), _lacking() as lacking:
        try:
            model = SentenceTransformer(
                id_or_path,
                device=device,
                trust_remote_code=False,
                local_files_only=cached_only,
                model_kwargs=options or None,
            )
            bare = load_file_path(id_or_path, "modules.json", local_files_only=cached_only) is None
        except (
            OSError, ValueError, ImportError, KeyError, RuntimeError,
            SafetensorError, pickle.UnpicklingError, EOFError, TypeError, AttributeError,
        ) as error:  # fmt: skip
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            if "trust_remote_code" in str(error):
                reason = "it needs its own code, which is never run here; use a built-in architecture"
            raise InputError(
                f"{id_or_path} cannot be loaded as an embedding model: {reason}; use another, "
                "or download or save it again"
            ) from error
    if lacking:
        raise InputError(f"{id_or_path} has missing weights, such as {lacking[0]}; download or save it again")
    # Looking up the base model's hub page while saving would need the network.
    model.model_card_data.local_files_only = True
    admit(model, id_or_path)
    _complete(model, id_or_path, bare=bare)
    _limit_length(model, max_seq_length, id_or_path)
    return model


@contextmanager
def _lacking() -> Iterator[list[str]]:
    """Collect the names of weights that a checkpoint lacks: a model with random ones is of no use."""
    names: list[str] = []

    def read(record: logging.LogRecord) -> bool:
        names.extend(_LACKING.findall(record.getMessage()))
        return record.levelno >= logging.ERROR

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(read)
    try:
        with at_level(logging.WARNING, logger.name):
            yield names
    finally:
        logger.removeFilter(read)


@cache
def say_once(line: str, level: int = logging.INFO) -> None:
    """Log a line, but not again in this process: a run loads its backbone several times."""
    log.log(level, "%s", line)


def _complete(model: SentenceTransformer, name: str, *, bare: bool) -> None:
    """Supply what checkpoints leave out: a padding token, the pooling of a plain one."""
    from sentence_transformers.base.modules import Transformer

    readers = [module for module in input_modules(model) if isinstance(module, Transformer)]
    for reader in readers:
        if reader.tokenizer is not None:
            _complete_tokenizer(reader, name)
    if not bare or not readers or readers[0].tokenizer is None:
        return
    template = " and without its chat template" if use_plain_text(model) else ""
    if not is_causal(model):
        say_once(f"{name}: plain transformers checkpoint, read with mean pooling{template}")
        return
    set_pooling(model, "last-token")
    say_once(f"{name}: causal language model, read with last-token pooling{template}")


def _complete_tokenizer(reader: Transformer, name: str) -> None:
    """Give a tokenizer a padding token, and refuse one that is missing or of another model."""
    tokenizer: Any = reader.tokenizer
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
        raise InputError(f"{name} holds no vocabulary: its tokenizer is missing; download or save it again")
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise InputError(
                f"{name}: its tokenizer has no padding token and no end-of-text token; set one and save it"
            )
        tokenizer.pad_token = tokenizer.eos_token
        say_once(f"{name}: no padding token, texts are padded with {tokenizer.eos_token}")
    rows = getattr(reader.model.get_input_embeddings(), "num_embeddings", None)
    if rows is not None and tokenizer.vocab_size > rows:
        raise InputError(
            f"{name}: its tokenizer has {tokenizer.vocab_size} tokens, its weights hold embeddings for "
            f"{rows}; they belong to different models; download or save them again"
        )


def check_model_path(id_or_path: str) -> bool:
    """Return whether it is a directory with a model; False if it may be a hub id, else an InputError."""
    path = Path(id_or_path)
    if path.is_dir():
        state = path / ".angle" / "fit_state.json"
        begun = state.is_file()
        if not any((path / name).is_file() for name in ("modules.json", "config.json", _ADAPTER_FILE)):
            hint = ", or run fit again if it was interrupted here" if begun else ""
            said = "it has neither modules.json nor config.json; give the folder that was saved"
            raise InputError(f"{path} holds no model: {said}{hint}")
        if (path / ".angle" / "earlier").is_dir():
            raise InputError(
                f"{path} holds no complete model: fit was interrupted as it replaced one; run it again"
            )
        if begun and b'"finished"' not in state.read_bytes():
            told = f"warning: the run of fit in {path} is not finished; the model there may be an earlier one"
            say_once(told, logging.WARNING)
        return True
    if path.is_file():
        raise InputError(f"{path} is a file; give the directory of a model, or its id on the hub")
    if path.is_absolute() or id_or_path.startswith((".", "~")) or id_or_path.count("/") > 1:
        raise InputError(f"model directory {id_or_path} does not exist; check the path")
    _hub_ids(id_or_path)
    return False


def _hub_ids(name: str) -> list[str]:
    """Return what a name may be on the hub; Sentence Transformers' own models have short names, too.

    An `InputError` where it is no hub id.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    names = [name] if "/" in name else [name, f"sentence-transformers/{name}"]
    try:
        for each in names:
            validate_repo_id(each)
    except HFValidationError:
        raise InputError(f"{name!r} is neither a local directory nor a hub id") from None
    return names


def is_cached(id_or_path: str) -> bool:
    """Return whether the hub's cache has a model, by its id or by Sentence Transformers' short name."""
    from huggingface_hub import try_to_load_from_cache

    files = ("modules.json", "config.json")
    return any(
        isinstance(try_to_load_from_cache(name, file), str) for name in _hub_ids(id_or_path) for file in files
    )


def check_model(id_or_path: str) -> bool:
    """Raise an InputError unless a model can be had, before anything heavy is loaded.

    Returns whether that is from the hub's cache alone, as the hub cannot be asked.
    """
    if check_model_path(id_or_path):
        return False
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    from angle_data.tables import TOKEN_REFUSED

    # One request each: loading would otherwise retry every file of the model for minutes without a network.
    for name in _hub_ids(id_or_path):
        try:
            HfApi().model_info(name, timeout=10)
        except RepositoryNotFoundError:
            continue
        except Exception as error:  # noqa: BLE001 - the hub's HTTP library, and so its errors, differ
            if getattr(getattr(error, "response", None), "status_code", None) == 401:
                raise InputError(f"{id_or_path}: {TOKEN_REFUSED}") from None
            break  # it cannot be asked, so the cache must do
        return False
    else:
        raise InputError(
            f"{id_or_path} is not a local directory, and the hub has no such model for you; check the id"
        )
    if not is_cached(id_or_path):
        raise InputError(
            f"{id_or_path} is not a local directory and not in the cache, and the hub cannot be reached "
            "(or HF_HUB_OFFLINE forbids it); give a local directory, or check the network"
        )
    return True


def _limit_length(model: SentenceTransformer, max_seq_length: int | None, name: str) -> None:
    """Set the length, or the checkpoint's; RoBERTa and its kin never use the positions up to padding's."""
    for module in input_modules(model):
        if getattr(getattr(type(module), "max_seq_length", None), "fset", module) is None:
            continue  # it reads texts of any length, such as static embeddings
        known: int | None = getattr(module, "max_seq_length", None)
        length = max_seq_length or known
        positions = _positions(module)
        if positions is not None and (length or 0) > positions:
            if max_seq_length is not None:
                raise InputError(
                    f"{name} reads at most {positions} tokens; max_seq_length {length} is too long"
                )
            length = positions
        if length != known:
            module.max_seq_length = length


def _positions(module: Any) -> int | None:
    """Return how many tokens the transformer that a module reads for has positions for, if it says."""
    from sentence_transformers.base.modules import Transformer

    if not isinstance(module, Transformer):
        return None
    for inner, part in module.model.named_modules():
        if inner.endswith("position_embeddings") and hasattr(part, "num_embeddings"):
            return int(part.num_embeddings) - (0 if part.padding_idx is None else part.padding_idx + 1)
    found: int | None = getattr(module.model.config, "max_position_embeddings", None)
    return found


def load_for_training(
    id_or_path: str,
    config: BackboneConfig,
    prompt: str = "",
    max_seq_length: int | None = None,
    device: str | None = None,
    seed: int = 0,
    roles: RolePrompts = NO_ROLES,
) -> SentenceTransformer:
    """Load a backbone as `load_backbone` does and apply a recipe's prompts, pooling and adapters.

    `config` is the recipe's `[backbone]` section; `seed` decides what is random in new adapters; `roles` are
    the prompts of queries and documents.

    Raises:
        InputError: As `load_backbone`, or the model cannot take something of `config`.
        MissingExtraError: Something that is needed is not installed.
    """
    model = load_backbone(id_or_path, max_seq_length, device, config)
    prepare_for_training(model, id_or_path, config, prompt, seed, roles)
    return model


def prepare_for_training(
    model: SentenceTransformer,
    name: str,
    config: BackboneConfig,
    prompt: str = "",
    seed: int = 0,
    roles: RolePrompts = NO_ROLES,
) -> None:
    """Apply a recipe's prompts, pooling and adapters to a model that is loaded; see `load_for_training`."""
    admit(model, name)
    check_cosine(model, name)
    transformer = model.transformers_model
    if transformer is None:
        modules = ", ".join(type(module).__name__ for module in model)
        raise InputError(
            f"{name} is not a transformer ({modules}): fit cannot tune it; eval and encode can use it"
        )
    if prepare_routes(model, name, config):
        say_once(f"{name}: its routes are equal and are trained as one, so that equal texts stay equal")
    if has_adapters(model):  # of another tool
        merge_adapters(model)
        # Their loading froze the weights, which are to be trained now, unless new adapters are: then they may
        # be 4-bit integers, which have no gradient.
        if not config.lora_rank:
            model.requires_grad_(True)
    if config.pooling != CHECKPOINT:
        set_pooling(model, config.pooling)
        say_once(f"{name}: tuned with {config.pooling} pooling, as the recipe says")
    if config.lora_rank:
        add_adapters(model, config, seed)
    set_prompt(model, prompt)
    set_role_prompts(model, roles)


def finish_training(
    model: SentenceTransformer,
    config: BackboneConfig,
    load_plain: Callable[[BackboneConfig], SentenceTransformer],
) -> None:
    """Make a trained model what will be saved, in place, so that it can be measured as users will have it.

    Its adapters are merged into weights that are not quantized, which are what a saved model is loaded with:
    `load_plain` loads the model that was trained for such a config.
    """
    if config.quantization != "none":
        plain = load_plain(replace(config, quantization="none"))
        copy_adapters(model, plain)
        for position, module in enumerate(plain):
            model[position] = module
    merge_adapters(model)


def save_model(model: SentenceTransformer, directory: Path) -> None:
    """Write the model into an empty folder, as Sentence Transformers opens it. No card.

    Its weights can be read by whoever can read the files beside them; safetensors writes for the owner alone.
    """
    with quiet_libraries():
        model.save_pretrained(str(directory), create_model_card=False)
    mode = (directory / "modules.json").stat().st_mode
    for path in directory.rglob("*.safetensors"):
        path.chmod(mode)
