"""The hash table: a dictionary in less memory."""

import random

import pytest

from angle_data.labelling.index import HashTable


@pytest.mark.parametrize("expected", [0, 4000])
def test_it_holds_what_a_dictionary_holds(expected):
    chooser = random.Random(0)
    table, truth = HashTable(expected), {}
    for _ in range(3000):
        # Few distinct low bits: probing has to step over many neighbours.
        key = chooser.getrandbits(54) << 10 | chooser.randrange(3) | 1
        if chooser.random() < 0.3 and truth:
            key = chooser.choice(list(truth)) if len(truth) < 200 else key
        table.put(key, len(truth) - 2)
        truth[key] = len(truth) - 2
    assert len(table) == len(truth)
    assert all(table.get(key, -9) == value for key, value in truth.items())
    assert table.get(1 << 63, -9) == truth.get(1 << 63, -9)


def test_zero_is_a_key():
    table = HashTable()
    assert table.get(0, -9) == -9
    table.put(0, 5)
    table.put((1 << 64) - 1, 6)
    assert (table.get(0, -9), table.get((1 << 64) - 1, -9), table.get(7, -9)) == (5, 6, -9)
