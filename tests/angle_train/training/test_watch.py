"""The log of a run, the mean loss terms, and what a full memory or disk is reported as."""

import logging
import signal

import pytest
import torch
from transformers import TrainerControl, TrainerState

from angle_data.errors import InputError
from angle_train.training.watch import (
    FIRST_LOOK_S,
    METRIC,
    FirstLook,
    RunCallback,
    catch_interrupt,
    evaluations_since_best,
    memory_errors_in_one_line,
)


class Steps:
    """Progress that notes what it is told."""

    def __init__(self):
        self.seen = []

    def advance(self, count=1, note=""):
        self.seen.append((count, note))


def evaluated(*scores):
    history = [{"step": 4 * (i + 1), "epoch": i + 1.0, f"eval_{METRIC}": s} for i, s in enumerate(scores)]
    return TrainerState(global_step=4 * len(scores), max_steps=40, log_history=history)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_for_a_checkpoint_and_the_second_stops(number, caplog):
    def stop(signum, frame):
        raise ZeroDivisionError

    before = signal.signal(number, stop)
    try:
        with catch_interrupt() as pressed:
            assert not pressed()
            signal.raise_signal(number)
            assert pressed()
            assert "finishing this step and saving a checkpoint" in caplog.text
            with pytest.raises(ZeroDivisionError):
                signal.raise_signal(number)
        with catch_interrupt():
            pass
        with pytest.raises(ZeroDivisionError):
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)


def test_a_signal_that_comes_while_they_are_caught_is_a_flag_too(monkeypatch):
    install, before = signal.signal, signal.getsignal(signal.SIGINT)

    def early(number, handler):
        if number == signal.SIGTERM and signal.getsignal(signal.SIGINT) is not before:
            signal.raise_signal(signal.SIGINT)
        return install(number, handler)

    with monkeypatch.context() as patch:
        patch.setattr(signal, "signal", early)
        with catch_interrupt() as pressed:
            assert pressed()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("start", "scores", "best"),
    [
        (0.5, [0.4], False),  # the untouched backbone is better
        (0.5, [0.5], False),
        (0.5, [0.6], True),
        (0.5, [0.6, 0.55], False),
        (0.5, [0.6, 0.7], True),
        (0.5, [0.3, 0.4], False),
    ],
)
def test_best_so_far_counts_the_untouched_backbone(caplog, start, scores, best):
    progress = Steps()
    callback = RunCallback(progress, 9, lambda: False, lambda: False, start)
    with caplog.at_level(logging.INFO, logger="angle"):
        callback.on_evaluate(None, evaluated(*scores), TrainerControl())
    assert ("the best so far" in caplog.text) == best
    callback.on_step_end(None, evaluated(*scores), TrainerControl())
    best_score = max(start, *scores)
    assert progress.seen == [(1, f"dev {100 * scores[-1]:.1f}, best {100 * best_score:.1f}")]


def test_patience_counts_evaluations_of_the_run_alone():
    scores = {(): 0, (0.3,): 0, (0.3, 0.2, 0.1): 2, (0.3, 0.3, 0.3): 2, (0.1, 0.3): 0}
    assert {some: evaluations_since_best(evaluated(*some)) for some in scores} == scores


@pytest.mark.parametrize(
    ("seconds_a_step", "first", "looked"),
    [
        (FIRST_LOOK_S / 10, 100, [10]),  # as soon as the time is over, and once
        (FIRST_LOOK_S / 10, 20, [10]),
        (FIRST_LOOK_S / 10, 19, []),  # the first evaluation is near
        (FIRST_LOOK_S * 3, 2, [1]),
        (FIRST_LOOK_S * 3, 1, []),
        (FIRST_LOOK_S / 1000, 100, []),  # a quick run
    ],
)
def test_a_first_look_comes_early_where_the_first_evaluation_is_far_away(seconds_a_step, first, looked):
    seen, now = [], [5.0]
    callback = FirstLook(lambda model, step: seen.append(step), first, lambda: False, lambda: now[0])
    callback.on_train_begin(None, TrainerState(), TrainerControl())
    for step in range(1, first + 1):
        now[0] += seconds_a_step
        callback.on_step_end(None, TrainerState(global_step=step), TrainerControl(), model=None)
    assert seen == looked


def test_a_run_that_diverged_is_not_looked_at():
    seen, now = [], [0.0]
    callback = FirstLook(lambda model, step: seen.append(step), 100, lambda: True, lambda: now[0])
    callback.on_train_begin(None, TrainerState(), TrainerControl())
    now[0] = FIRST_LOOK_S
    callback.on_step_end(None, TrainerState(global_step=1), TrainerControl(), model=None)
    assert seen == []


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
        pytest.raises(InputError, match=f"{place} does not have enough memory") as caught,
        memory_errors_in_one_line(),
    ):
        action()
    for setting in ("chunk_size", "batch_size", "max_seq_length", "gradient_cache", "gradient_checkpointing"):
        assert setting in str(caught.value)
    assert "\n" not in str(caught.value)
