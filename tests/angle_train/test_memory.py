"""Not enough memory is one line of advice."""

import pytest
import torch

from angle_data.errors import InputError
from angle_train.train.memory import memory_errors_in_one_line


def too_much_on_the_processor():
    torch.empty(2**55, dtype=torch.float64)  # more than any machine has


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("action", "place"),
    [
        (too_much_on_the_processor, "the machine"),
        (raising(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")), "the GPU"),
        (raising(MemoryError()), "the machine"),
    ],
)
def test_memory_errors_name_the_settings_that_need_less(action, place):
    with (
        pytest.raises(InputError, match=f"{place} has not enough memory") as caught,
        memory_errors_in_one_line(),
    ):
        action()
    for setting in ("chunk_size", "batch_size", "max_seq_length", "gradient_cache", "gradient_checkpointing"):
        assert setting in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), memory_errors_in_one_line():
        torch.ones(2, 3) @ torch.ones(2, 3)
    with memory_errors_in_one_line():
        pass
