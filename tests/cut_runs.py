"""Runs that are cut off at one event of one step, as a kill or Ctrl-C would."""

import signal
from contextlib import contextmanager

import pytest
from transformers import TrainerCallback

from angle_train.training import trainer


class CutOff(RuntimeError):
    """Stands for a kill: whatever was on the disk stays as it is."""


def kill():
    raise CutOff


def interrupt():
    signal.raise_signal(signal.SIGINT)


@contextmanager
def cut_off(event, step, action=kill, folder=""):
    """Let runs that write into `folder` do something at one event of one step, inside the block."""

    class Cut(trainer.RunCallback):
        """The run's callback, and the cut."""

    def at_event(self, args, state, control, **kwargs):
        if state.global_step == step and folder in str(args.output_dir):
            action()
        return original(self, args, state, control, **kwargs)

    original = getattr(trainer.RunCallback, event, TrainerCallback.on_save)
    setattr(Cut, event, at_event)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "RunCallback", Cut)
        yield
