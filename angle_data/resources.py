"""What comes with the toolkit: its folders and its extras, in a clone or installed."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]  # of the clone, or the folder that the packages are installed in


def packaged_folder(name: str, root: Path = _ROOT) -> Path:
    """Return a folder that comes with the toolkit: `prompts`, `recipes`, `general`; `root` has the packages.

    An installed copy carries it inside one of the packages, a clone at its root.
    """
    for home in (root / "angle_data", root / "angle_train", root):
        if (home / name).is_dir():
            return home / name
    raise FileNotFoundError(f"the folder {name!r} is missing from the installed toolkit; install it again")


def install_command(extra: str, root: Path = _ROOT) -> str:
    """Return the command that adds an optional extra such as `train`; in a clone for the clone's root."""
    in_clone = (root / "pyproject.toml").is_file()
    return f'pip install -e ".[{extra}]"' if in_clone else f'pip install "angle-toolkit[{extra}]"'
