"""What a launcher may ask of sharding; `test_sharding` covers what then happens."""

import os

import pytest
import torch

from angle_data.errors import InputError
from angle_train.train.arguments import resolve_precision
from angle_train.train.processes import connect
from angle_train.train.sharding_settings import settle_sharding, sharding_asked


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """A launcher's environment, put back in the end."""
    monkeypatch.setattr(os, "environ", os.environ | {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("FSDP_VERSION", "1", "asks for FSDP 1; start with --fsdp_version 2"),
        ("FSDP_OFFLOAD_PARAMS", "true", "FSDP_OFFLOAD_PARAMS is not supported"),
        ("FSDP_ACTIVATION_CHECKPOINTING", "true", "set gradient_checkpointing in the recipe"),
        ("FSDP_IGNORED_MODULES", "pooler", "leave fsdp_ignored_modules out"),
        ("ACCELERATE_USE_PARALLELISM_CONFIG", "true", "leave --use_parallelism_config out"),
    ],
)
def test_what_a_sharded_run_cannot_do_is_refused_before_anything_is_connected(name, value, told):
    os.environ |= {"WORLD_SIZE": "2", name: value}
    with pytest.raises(InputError, match=told), connect("cpu"):
        pass


def test_fsdp_1_is_what_no_version_means():
    del os.environ["FSDP_VERSION"]
    with pytest.raises(InputError, match="FSDP_VERSION=2"):
        settle_sharding()


def test_the_launchers_own_defaults_are_taken_and_completed():
    """`accelerate launch --use_fsdp --fsdp_version 2` sets these."""
    os.environ |= {
        "FSDP_OFFLOAD_PARAMS": "false",
        "FSDP_ACTIVATION_CHECKPOINTING": "false",
        "FSDP_CPU_RAM_EFFICIENT_LOADING": "true",
        "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
    }
    settle_sharding()
    assert os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] == "false"  # process 0 measures with its own copy
    assert os.environ["FSDP_STATE_DICT_TYPE"] == "FULL_STATE_DICT"
    assert os.environ["FSDP_AUTO_WRAP_POLICY"] == "TRANSFORMER_BASED_WRAP"


def test_how_layers_are_grouped_is_the_users_choice():
    os.environ["FSDP_AUTO_WRAP_POLICY"] = "SIZE_BASED_WRAP"
    settle_sharding()
    assert os.environ["FSDP_AUTO_WRAP_POLICY"] == "SIZE_BASED_WRAP"


def test_a_single_process_has_nothing_to_shard():
    os.environ["WORLD_SIZE"] = "1"
    with connect("cpu"):
        assert not sharding_asked()


def test_half_precision_with_a_scaler_is_refused_where_the_model_is_sharded():
    gpu = torch.device("cuda")
    os.environ["WORLD_SIZE"] = "1"
    assert resolve_precision("fp16", gpu) == "fp16"
    os.environ["WORLD_SIZE"] = "2"
    with pytest.raises(InputError, match="fp16 is not supported where a model is sharded"):
        resolve_precision("fp16", gpu)
    assert resolve_precision("bf16", gpu) == "bf16"
