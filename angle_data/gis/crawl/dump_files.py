"""Event dumps on disk: which files there are, and their lines one by one.

Memory is bounded whatever a file holds: a line beyond `LONGEST_LINE` is skipped, and a file that expands out
of all proportion is given up.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from angle_data.errors import InputError

LONGEST_LINE = 4 << 20
"""Bytes of a line. The longest title, body and comment that GitHub takes are 1.6 MB when all is escaped."""

_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"
# GH Archive's own files expand about tenfold.
_MOST_EXPANSION = 200
_ALWAYS_READ = 256 << 20
_SUFFIXES = tuple(f"{suffix}{packed}" for suffix in (".json", ".jsonl", ".ndjson") for packed in ("", ".gz"))


class Damaged(Exception):
    """A file that cannot be read to its end; what came before is good."""


class _Lines(Protocol):
    def readline(self, size: int, /) -> bytes: ...


class _Utf16:
    """The lines of a UTF-16 stream, in UTF-8."""

    def __init__(self, stream: gzip.GzipFile | io.BufferedReader) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-16", errors="replace", newline="\n")

    def readline(self, size: int, /) -> bytes:
        return self._text.readline(size).encode()


def find_dumps(path: Path) -> list[Path]:
    """Return a file, or the dumps in a folder and the folders inside it, by name; hidden ones are no dumps.

    An `InputError` if there is none.
    """
    files = [path]
    if path.is_dir():
        inside = (file for file in path.rglob("*") if not file.name.startswith("."))
        files = sorted(file for file in inside if file.name.lower().endswith(_SUFFIXES) and file.is_file())
    if not files or not files[0].is_file():
        raise InputError(f"--archive {path} is neither a file nor a folder with .json files; check the path")
    return files


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_dump(path: Path) -> Iterator[bytes | None]:
    """Yield the lines of a dump, without byte order marks; blank ones as well, None for one that is too long.

    What the file holds decides whether it is compressed, not its name. `Damaged` if it ends early or expands
    out of all proportion.
    """
    most = max(_ALWAYS_READ, _MOST_EXPANSION * path.stat().st_size)
    read = 0
    too_long = False
    try:
        with _opened(path) as stream:
            # The rest of a line that is too long comes in blocks.
            while block := stream.readline(_BLOCK if too_long else LONGEST_LINE + 1):
                read += len(block)
                if read > most:
                    raise Damaged(f"expands to more than {_MOST_EXPANSION} times its size")
                ends = block.endswith(b"\n")
                if too_long:
                    too_long = not ends
                elif not ends and len(block) > LONGEST_LINE:
                    too_long = True
                    yield None
                else:
                    yield block.removeprefix(codecs.BOM_UTF8)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(str(error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[_Lines]:
    with path.open("rb") as raw:
        stream = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == _GZIP else raw
        utf16 = stream.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        yield _Utf16(stream) if utf16 else stream
