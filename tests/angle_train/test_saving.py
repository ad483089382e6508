"""A disk that takes no more: one line, whichever library was writing."""

import pytest
import torch
from full_disk import files_of_at_most
from safetensors.torch import save_file

from angle_data.errors import InputError
from angle_train.train.saving import disk_errors_in_one_line


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda path: path.write_bytes(b"0" * 90_000), "File too large"),
        (lambda path: save_file({"a": torch.zeros(90_000)}, path), "File too large"),
        (lambda path: torch.save({"a": torch.zeros(90_000)}, path), "a write failed; the disk may be full"),
    ],
    ids=["plain", "safetensors", "torch"],
)
def test_a_write_that_fails_is_one_line(tmp_path, write, reason):
    with files_of_at_most(10_000), pytest.raises(InputError) as caught, disk_errors_in_one_line(tmp_path):
        write(tmp_path / "x")
    assert str(caught.value) == (
        f"{tmp_path}: cannot be written ({reason}); free space or give another --out, and run again"
    )


def damaged(path):
    path.write_bytes(b"no checkpoint at all")
    return path


@pytest.mark.parametrize(
    "fail",
    [
        lambda path: torch.load(damaged(path), weights_only=True),
        lambda path: torch.zeros(2) @ torch.zeros(3),
        lambda path: (_ for _ in ()).throw(BrokenPipeError(32, "Broken pipe")),
    ],
    ids=["reading", "computing", "pipe"],
)
def test_other_errors_stay_what_they_are(tmp_path, fail):
    with pytest.raises(Exception) as caught, disk_errors_in_one_line(tmp_path):  # noqa: PT011 - of any kind
        fail(tmp_path / "x")
    assert not isinstance(caught.value, InputError)


def test_nothing_is_raised_when_all_is_written(tmp_path):
    with disk_errors_in_one_line(tmp_path):
        torch.save({"a": torch.zeros(9)}, tmp_path / "x")
    assert (tmp_path / "x").exists()
