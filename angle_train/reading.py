"""How a training reads its pairs: text1 as a query and text2 as a document, or both alike, and how far."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer

from angle_data.errors import InputError
from angle_train.data.pairs import PairSet
from angle_train.model.length import LengthChoice, choose_length, choose_length_in_roles
from angle_train.model.load import say_once
from angle_train.model.roles import roles_of, roles_sentence, router_of, tells_roles
from angle_train.recipe import TrainingConfig
from angle_train.training.processes import process_count


def reads_roles(
    model: SentenceTransformer, config: TrainingConfig, name: str, *, teacher: bool = False
) -> bool:
    """Return whether the pairs of a training have roles for a model, and log how they are read.

    They have where the user says so and the model tells the roles apart, and always for a model with routes.

    Raises:
        InputError: They have, and something in the run goes without roles only.
    """
    routes = router_of(model) is not None
    if not routes and not roles_of(config).given:
        if tells_roles(model):
            say_once(
                f"{name} has prompts for queries and documents; the pairs are read without them: if text1 is "
                "a query and text2 a document, give --roles"
            )
        return False
    say_once(f"{name}: {roles_sentence(model)}")
    if not tells_roles(model):
        return False
    if teacher:
        raise InputError("--teacher scores pairs without roles; leave it out, or --roles and the prompts")
    if routes and process_count() > 1:
        raise InputError(f"{name} is asymmetric (Router) and trains in one process; run it without torchrun")
    return True


def length_of_texts(
    model: SentenceTransformer, pairs: PairSet, config: TrainingConfig, percentile: float
) -> LengthChoice:
    """Return how many tokens leave that percentile of the training texts whole, with their prompts."""
    if pairs.roles:
        return choose_length_in_roles(model, pairs.text1, pairs.text2, percentile)
    return choose_length(model, [*pairs.text1, *pairs.text2], config.prompt or None, percentile)
