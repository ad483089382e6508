"""Loads the model to be trained or evaluated, quietly, from a directory or from the hub.

Only modules that Sentence Transformers brings itself: code from a model repository is never run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from angle_data.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = [
    "backbone_identity",
    "check_training_extra",
    "load_backbone",
    "quiet_libraries",
]

log = logging.getLogger("angle.backbones")

# What training and evaluation import; scipy comes with sentence-transformers, the others by name.
_NEEDED = (
    "accelerate",
    "datasets",
    "huggingface_hub",
    "matplotlib",
    "numpy",
    "safetensors",
    "scipy",
    "sentence_transformers",
    "torch",
    "transformers",
)
# What loading a model reads from its directory, apart from what this toolkit puts beside it.
_MODEL_FILES = (".safetensors", ".bin", ".json", ".txt", ".model")
_NOT_OF_THE_MODEL = {"report.json", "fit_state.json"}
_NOT_READ = {"onnx", "openvino", "checkpoints"}


def check_training_extra(feature: str) -> None:
    """Check that what the `train` extra brings is installed, without importing it.

    Raises:
        MissingExtraError: It is not; names `feature` and the install command.
    """
    if any(importlib.util.find_spec(name) is None for name in _NEEDED):
        raise MissingExtraError(feature, "train")


def backbone_identity(id_or_path: str) -> str:
    """Return what a model is, whatever machine it lies on: `NAME@DIGEST` of a directory, a hub id as it is.

    DIGEST is the start of the SHA-256 over weights, settings and vocabulary, so that another model put into
    the same directory is another backbone. Reads the whole directory.
    """
    root = Path(id_or_path)
    if not root.is_dir():
        return id_or_path
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        hidden = any(part.startswith(".") for part in inside.parts)
        if hidden or path.suffix not in _MODEL_FILES or not _NOT_READ.isdisjoint(inside.parts):
            continue
        if path.is_file() and path.name not in _NOT_OF_THE_MODEL:
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{inside.as_posix()}\0{content}\n".encode())
    return f"{root.resolve().name}@{digest.hexdigest()[:12]}"


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silence the progress bars and the chatter of transformers and datasets inside the block."""
    import datasets
    from transformers.utils import logging as transformers_logging

    enable_bars: Callable[[], None] = transformers_logging.enable_progress_bar
    disable_bars: Callable[[], None] = transformers_logging.disable_progress_bar
    noisy = [logging.getLogger(name) for name in ("sentence_transformers", "transformers", "datasets")]
    levels = [logger.level for logger in noisy]
    bars = transformers_logging.is_progress_bar_enabled()
    for logger in noisy:
        logger.setLevel(logging.ERROR)
    disable_bars()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        for logger, level in zip(noisy, levels, strict=True):
            logger.setLevel(level)
        if bars:
            enable_bars()
        datasets.enable_progress_bars()


def load_backbone(
    id_or_path: str, max_seq_length: int | None = None, device: str | None = None
) -> SentenceTransformer:
    """Load a Sentence Transformers model, or a plain transformers checkpoint with mean pooling.

    Args:
        id_or_path: A local directory, or an id on the Hugging Face hub.
        max_seq_length: Tokens per text; default the checkpoint's own.
        device: `cpu`, `cuda` …; default the best there is.

    Raises:
        InputError: There is no such directory or id, the hub cannot be reached, it is no embedding model,
            or it has no positions for `max_seq_length` tokens.
        MissingExtraError: torch or sentence-transformers is not installed.
    """
    check_training_extra("loading a model")
    cached_only = not _is_local(id_or_path) and not _hub_answers(id_or_path)
    from sentence_transformers import SentenceTransformer

    with quiet_libraries():
        try:
            model = SentenceTransformer(
                id_or_path, device=device, trust_remote_code=False, local_files_only=cached_only
            )
        except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
            if cached_only:
                raise InputError(
                    f"{id_or_path} is no local directory and not in the cache, and the hub cannot be reached "
                    "(or HF_HUB_OFFLINE forbids it); give a local directory, or check the network"
                ) from None
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"{id_or_path} cannot be loaded as an embedding model: {reason}") from error
    # Looking up the base model's hub page while saving would need the network.
    model.model_card_data.local_files_only = True
    if _is_local(id_or_path) and not (Path(id_or_path) / "modules.json").is_file():
        log.info("%s: plain transformers checkpoint, its token embeddings are averaged", id_or_path)
    if max_seq_length is not None:
        _limit_length(model, max_seq_length, id_or_path)
    return model


def _is_local(id_or_path: str) -> bool:
    """Return whether it is a directory; paths that are no model directory raise InputError."""
    path = Path(id_or_path)
    if path.is_dir():
        if not any((path / name).is_file() for name in ("modules.json", "config.json")):
            raise InputError(f"{path} holds no model: it has neither modules.json nor config.json")
        return True
    if path.is_file():
        raise InputError(f"{path} is a file; give the directory of a model, or its id on the hub")
    if path.is_absolute() or id_or_path.startswith((".", "~")) or id_or_path.count("/") > 1:
        raise InputError(f"model directory {id_or_path} does not exist; check the path")
    return False


def _hub_answers(model_id: str) -> bool:
    """Return whether the hub has the model; False if it cannot be asked, so that the cache must do.

    One request: loading would otherwise retry every file of the model for minutes without a network.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    # Short names are Sentence Transformers' own models there.
    candidates = [model_id] if "/" in model_id else [model_id, f"sentence-transformers/{model_id}"]
    for candidate in candidates:
        try:
            HfApi().model_info(candidate, timeout=10)
        except HFValidationError:
            raise InputError(f"{model_id!r} is neither a local directory nor a hub id") from None
        except RepositoryNotFoundError:
            continue
        except Exception:  # noqa: BLE001 - the hub's HTTP library, and so its errors, differ between versions
            return False
        return True
    raise InputError(
        f"{model_id} is no local directory, and the hub has no such model open to you; check the id"
    )


def _limit_length(model: SentenceTransformer, max_seq_length: int, name: str) -> None:
    transformer = model.transformers_model
    positions = getattr(transformer.config, "max_position_embeddings", None) if transformer else None
    if positions is not None and max_seq_length > positions:
        raise InputError(
            f"{name} has positions for {positions} tokens; max_seq_length {max_seq_length} is too long"
        )
    model.max_seq_length = max_seq_length
