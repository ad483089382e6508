"""Activations of texts, kept in a file of the run: what the frozen layers make of a text is computed once.

The file is only ever appended to and read through the system's cache of files, so what is used often is in
memory as long as there is room. Beside it stands an index. What was written before a kill is used again.
"""

from __future__ import annotations

import logging
import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

log = logging.getLogger("angle.fit")

_RECORD = struct.Struct("<16sQ")  # key, and how many bytes


class ActivationFile:
    """Activations (L, D) of texts with L tokens each, by a key of 16 bytes.

    Args:
        folder: Made for it on first use.
        width: D.
        dtype: Of what is kept; the file's name has it, so that a run never reads another type.
        process: Number of this process; each has a file of its own.
    """

    def __init__(self, folder: Path, width: int, dtype: torch.dtype, process: int = 0) -> None:
        self._folder = folder
        self._width = width
        self.dtype = dtype
        self._name = f"{process}-{str(dtype).removeprefix('torch.')}"
        self._places: dict[bytes, tuple[int, int]] | None = None  # key -> where it begins, how many bytes
        self._end = 0
        self._most = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._open()

    def get(self, key: bytes) -> Tensor:
        """Return the activations (L, D) of a text that is kept."""
        start, size = self._open()[key]
        found = bytearray(os.pread(self._data, size, start))
        return torch.frombuffer(found, dtype=self.dtype).reshape(-1, self._width)

    def put(self, key: bytes, activations: Tensor) -> None:
        """Keep the activations (L, D) of a text, unless they are kept or half of the free disk is full."""
        places = self._open()
        content = activations.to(self.dtype).contiguous().view(torch.uint8).numpy().tobytes()
        if key in places:
            return
        if self._end + len(content) > self._most:
            if self._most:
                log.warning(
                    "%s: half of the free disk space holds activations of %d texts; those of other texts "
                    "are computed again each time",
                    self._folder,
                    len(places),
                )
            self._most = 0  # said once
            return
        _write(self._data, content)
        _write(self._index, _RECORD.pack(key, len(content)))  # later: it says what is whole
        places[key] = (self._end, len(content))
        self._end += len(content)

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Yield this, which opens its files when they are needed, and close them after the block."""
        try:
            yield self
        finally:
            if self._places is not None:
                os.close(self._data)
                os.close(self._index)
                self._places = None

    def _open(self) -> dict[bytes, tuple[int, int]]:
        """Return where everything is; reads the index on first use, and drops what a kill left unfinished."""
        if self._places is not None:
            return self._places
        self._folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT
        self._data = os.open(self._folder / f"{self._name}.bin", flags)
        self._index = os.open(self._folder / f"{self._name}.index", flags)
        there = os.fstat(self._data).st_size
        records = os.pread(self._index, os.fstat(self._index).st_size, 0)
        places: dict[bytes, tuple[int, int]] = {}
        self._end = 0
        for key, size in _RECORD.iter_unpack(records[: len(records) // _RECORD.size * _RECORD.size]):
            if self._end + size > there:
                break
            places[key] = (self._end, size)
            self._end += size
        os.ftruncate(self._data, self._end)
        os.ftruncate(self._index, len(places) * _RECORD.size)
        for file in (self._data, self._index):
            os.lseek(file, 0, os.SEEK_END)
        self._most = self._end + shutil.disk_usage(self._folder).free // 2
        self._places = places
        return places


def _write(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]
