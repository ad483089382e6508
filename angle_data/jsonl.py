"""JSON Lines in and out: reading with `file:line` errors, and atomic replacement of files."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import json
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import jsonlines

from angle_data.errors import InputError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk that takes no more


def dumps(row: Any) -> str:
    """Return `row` as one line of JSON: characters beyond ASCII kept, keys in given order."""
    return json.dumps(row, ensure_ascii=False)


def loads(text: str | bytes) -> Any:
    """Return decoded JSON; a ValueError for what is none, also where it is nested too deep to be read."""
    try:
        return json.loads(text)
    except RecursionError:  # brackets in brackets in brackets
        raise ValueError("nested too deep") from None


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield `(line number, line)` of a text file (perhaps `.gz`), lazily, with line ends as they are.

    It is in UTF-8, or in UTF-16 if it begins with the byte order mark of that; the mark is skipped. An
    `InputError` names the file, and the line that is not UTF-8.
    """
    number = 0
    is_binary = False
    try:
        if path.is_dir():
            raise InputError(f"{path} is a directory; give a file")
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            if (start := stream.read(2)) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                stream.seek(0)
                yield from _utf16_lines(path, stream)
                return
            block = start + stream.peek(512)
            halves = block[::2].count(0), block[1::2].count(0)
            if min(halves) == 0 and max(halves) > max(len(block) / 4, 1):
                raise InputError(
                    f"{path} seems to be UTF-16 without its byte order mark; convert it to UTF-8"
                )
            is_binary = b"\0" in block
            # Spreadsheets on a Mac may end lines with \r alone.
            blocks = chain([start + stream.readline()], stream)
            lines = chain.from_iterable(line.splitlines(keepends=True) for line in blocks)
            for number, line in enumerate(lines, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path") from None
    except PermissionError:
        raise InputError(f"{path} cannot be read: permission denied") from None
    except UnicodeDecodeError:
        if is_binary:  # an image, a document, a spreadsheet under another name
            raise InputError(f"{path} is no text file, but holds binary data; export it as text") from None
        raise InputError(f"{path}:{number}: not UTF-8 text; convert the file to UTF-8") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{path}: damaged gzip file ({error})") from None


def _utf16_lines(path: Path, stream: Any) -> Iterator[tuple[int, str]]:
    try:
        with io.TextIOWrapper(stream, encoding="utf-16", newline="") as lines:
            yield from enumerate(lines, start=1)
    except UnicodeDecodeError:
        raise InputError(f"{path}: damaged UTF-16 text; write it again, in UTF-8") from None


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield `(line number, object)` of every non-blank line, lazily; an `InputError` names `file:line`."""
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for place, line in read_lines(path):
            number = place
            yield line

    reader = jsonlines.Reader(lines(), loads=loads)
    while True:
        try:
            row = reader.read(type=dict, skip_empty=True)
        except EOFError:
            return
        except jsonlines.InvalidLineError as error:
            if error.__cause__ is None:  # JSON, but no object
                found = type(json.loads(error.line)).__name__
                raise InputError(f"{path}:{number}: expected a JSON object, got {found}") from None
            if not str(error.line).endswith(("\n", "\r")):  # as only the last line of a file can
                raise InputError(
                    f"{path}:{number}: not valid JSON ({error.__cause__}); the file ends within this line, "
                    "so it is not whole: write it again, or remove the line"
                ) from None
            raise InputError(f"{path}:{number}: not valid JSON ({error.__cause__})") from None
        yield number, row


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Yield a path beside `path`; what was written there takes its place if the block ends without an error.

    So readers see the old content or the new, never a part. Errors of the disk name `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and (
            error.filename == str(temporary) or (error.filename is None and error.errno in _NO_ROOM)
        ):
            error.filename = str(path)
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def replace_file(path: Path) -> Iterator[IO[str]]:
    """Write a whole text file in place of `path`, see `beside`."""
    with beside(path) as temporary, temporary.open("x", encoding="utf-8", newline="\n") as stream:
        yield stream


def write_text(path: Path, text: str) -> None:
    """Atomically write a whole text file."""
    with replace_file(path) as stream:
        stream.write(text)


def write_json(path: Path, content: Any, indent: int = 2) -> None:
    """Atomically write JSON for people: characters beyond ASCII kept, keys in given order, paths as text."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=indent, default=str) + "\n")


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Atomically write `rows`, one a line."""
    with replace_file(path) as stream:
        stream.writelines(dumps(row) + "\n" for row in rows)
