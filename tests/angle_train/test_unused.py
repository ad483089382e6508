"""Which chosen settings play no part in a run, and the sentence that tells it."""

import pytest

from angle_train.recipe import Recipe
from angle_train.unused import unused_settings


@pytest.mark.parametrize(
    ("settings", "run", "notes"),
    [
        ({}, {}, []),
        (
            {"loss": "cosent", "angle_mode": "published", "isp": "equal", "negative_score": 0.3},
            {"weighted": True},
            [
                "angle_mode, isp play no part with loss 'cosent'",
                "the weights of the pairs play no part with loss 'cosent'",
            ],
        ),
        ({"angle_mode": "published", "isp": "equal"}, {"weighted": True}, []),
        ({"lora_dropout": 0.1}, {}, ["lora_dropout plays no part with lora_rank 0"]),
        ({"lora_dropout": 0.1, "lora_rank": 2}, {}, []),
        (
            {"window": 64, "max_windows": 4},
            {},
            ["window, max_windows play no part with long_text 'cut'"],
        ),
        (
            {"long_text": "head_tail", "window": 64, "stride": 9},
            {},
            ["stride plays no part with long_text 'head_tail'"],
        ),
        ({"long_text": "windows", "window": 64, "stride": 64, "window_memory": 4}, {}, []),
        (
            {"long_text": "windows", "stride": 65, "max_seq_length": 64},
            {},
            ["stride 65 is more than a window of 64; windows then stand side by side"],
        ),
        (
            {"human_weight": 2.0, "folds": 3},
            {},
            ["human_weight, folds play no part without human-graded pairs"],
        ),
        ({"human_weight": 2.0, "folds": 3}, {"human": True}, []),
        ({"folds": 3}, {"human": True, "dev": True}, ["folds plays no part with dev pairs"]),
        (
            {"patience": 3},
            {"human": True},
            ["patience plays no part where parts of the human-graded pairs choose the number of steps"],
        ),
        ({"patience": 3}, {"human": True, "dev": True}, []),
        ({"patience": 3}, {}, []),
        (
            {
                "in_batch_weight": 0.0,
                "in_batch_tau": 0.1,
                "isp": "none",
                "angle_weight": 0.0,
                "angle_tau": 0.5,
            },
            {},
            [
                "in_batch_tau, isp play no part with in_batch_weight 0",
                "angle_tau plays no part with angle_weight 0",
            ],
        ),
        ({"cosine_weight": 0.0, "cosine_tau": 0.1}, {}, ["cosine_tau plays no part with cosine_weight 0"]),
        (
            {"loss": "cosent", "angle_weight": 0.0, "angle_tau": 0.5},
            {},
            ["angle_weight, angle_tau play no part with loss 'cosent'"],
        ),
        (
            {"freeze_embeddings": True, "lora_rank": 2},
            {},
            ["freeze_embeddings plays no part with lora_rank 2"],
        ),
        ({"freeze_embeddings": True}, {}, []),
    ],
)
def test_chosen_settings_without_effect_are_told(settings, run, notes):
    run = {"human": False, "dev": False, "weighted": False} | run
    assert unused_settings(Recipe().with_overrides(settings), **run) == notes
