"""A table from 64-bit hashes to numbers that takes about 30 bytes an entry, where a dictionary takes 130.

Open addressing with linear probing over two arrays. Two things with equal hashes are one thing here: a chance
of one in ten million among two million.
"""

from __future__ import annotations

from array import array

_SMALLEST = 1 << 10
_FULLEST = 0.6
_64_BITS = (1 << 64) - 1


class HashTable:
    """Signed 64-bit integers under 64-bit hashes, such as Python's `hash`, which must be well mixed already.

    The table grows as needed; `expected` entries fit without growing.
    """

    def __init__(self, expected: int = 0) -> None:
        self._count = 0
        size = _SMALLEST
        while expected >= _FULLEST * size:
            size *= 2
        self._reserve(size)

    def __len__(self) -> int:
        return self._count

    def get(self, key: int, default: int) -> int:
        """Return the number under `key`, `default` when there is none."""
        slot = self._slot(key)
        return self._values[slot] if self._keys[slot] else default

    def setdefault(self, key: int, value: int) -> int:
        """Return the number under `key`; if there is none, `value`, which is put there."""
        slot = self._slot(key)
        if self._keys[slot]:
            return self._values[slot]
        self.put(key, value)
        return value

    def put(self, key: int, value: int) -> None:
        """Set the number under `key`."""
        slot = self._slot(key)
        if not self._keys[slot]:
            if self._count >= self._most:
                self._grow()
                slot = self._slot(key)
            # 0 marks a free slot; the one key of 2^64 that is 0 shares its place with 1.
            self._keys[slot] = key & _64_BITS or 1
            self._count += 1
        self._values[slot] = value

    def _slot(self, key: int) -> int:
        """Return where `key` is, or the free slot where it belongs."""
        keys, mask = self._keys, self._mask
        key = key & _64_BITS or 1
        slot = key & mask
        while (there := keys[slot]) and there != key:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        keys, values = self._keys, self._values
        self._reserve(len(keys) * 2)
        for key, value in zip(keys, values, strict=True):
            if key:
                slot = self._slot(key)
                self._keys[slot], self._values[slot] = key, value

    def _reserve(self, size: int) -> None:
        self._mask, self._most = size - 1, int(_FULLEST * size)
        self._keys = array("Q", bytes(8 * size))
        self._values = array("q", bytes(8 * size))
