"""Queries and documents: how a model is told which a text is, by a prompt before it or by a route of its own.

Sentence Transformers keeps both in the model: `prompts` by name, and the routes of a `Router`. So
`encode_query` and `encode_document` of the saved model read texts as they were trained and measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from angle_data.errors import InputError
from angle_train.model.prompt import TEXT_SLOT, has_template
from angle_train.recipe import TrainingConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

Role = Literal["", "query", "document"]
"""What a text is to a search; empty where that is not said."""

AS_QUERY: Role = "query"
AS_DOCUMENT: Role = "document"
PAIR: tuple[Role, Role] = (AS_QUERY, AS_DOCUMENT)
"""What the two texts of a pair with roles are."""

_PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}


@dataclass(frozen=True, slots=True)
class RolePrompts:
    """What the user says of queries and documents.

    Attributes:
        asked: Whether text1 is a query and text2 a document.
        query: Stands before every query; empty for what the model has.
        document: Stands before every document; empty for what the model has.
    """

    asked: bool = False
    query: str = ""
    document: str = ""

    @property
    def given(self) -> bool:
        """Whether the pairs have roles, as far as the user says; a prompt for either says it too."""
        return self.asked or bool(self.query or self.document)


NO_ROLES = RolePrompts()


def roles_of(config: TrainingConfig) -> RolePrompts:
    """Return what a recipe says of queries and documents."""
    return RolePrompts(config.roles, config.query_prompt, config.document_prompt)


def router_of(model: SentenceTransformer) -> Router | None:
    """Return the module that sends texts through routes, if the model has one."""
    from sentence_transformers.base.modules import Router

    return next((module for module in model if isinstance(module, Router)), None)


def input_modules(model: SentenceTransformer) -> list[Any]:
    """Return the modules that read texts: the first one, or that of every route."""
    router = router_of(model)
    if router is None:
        return [next(iter(model))] if len(model) else []
    return list({id(route[0]): route[0] for route in router.sub_modules.values()}.values())  # type: ignore[index]


def transformers_of(model: SentenceTransformer) -> list[Any]:
    """Return the transformers of a model: one, or that of every route that has one."""
    from sentence_transformers.base.modules import Transformer

    return [module.model for module in input_modules(model) if isinstance(module, Transformer)]


def tokenizer_of(model: SentenceTransformer, role: Role) -> Any:
    """Return the tokenizer of the transformer that reads texts of a role; None where none does."""
    from sentence_transformers.base.modules import Transformer

    router = router_of(model)
    if router is None:
        return model.tokenizer
    places = ((role, "text"), (role, None), (None, "text"), (None, None))  # in the order of the library
    names = [*(router.route_mappings.get(place) for place in places), role, "text", router.default_route]
    routes: Any = router.sub_modules
    reader = next(routes[name][0] for name in names if name in routes)
    return reader.tokenizer if isinstance(reader, Transformer) else None


def tokens_read(model: SentenceTransformer) -> int | None:
    """Return how many tokens of a text a model reads; of several routes, the longest that has an end."""
    if router_of(model) is None:
        return model.max_seq_length
    lengths = [getattr(module, "max_seq_length", None) for module in input_modules(model)]
    return max((int(length) for length in lengths if length and math.isfinite(length)), default=None)


def role_prompt(model: SentenceTransformer, role: Role) -> str | None:
    """Return what stands before a text of a role: the role's prompt, or the default one; None if nothing."""
    names = (*_PROMPT_NAMES.get(role, ()), model.default_prompt_name)
    return next((model.prompts[name] for name in names if name and model.prompts.get(name)), None)


def role_options(model: SentenceTransformer, role: Role) -> dict[str, Any]:
    """Return what `encode` and `preprocess` of a model are given for a text of a role.

    A text without a role takes the model's default route, or else is read as a document.
    """
    router = router_of(model)
    task = role or (AS_DOCUMENT if router is not None and router.default_route is None else "")
    return {"prompt": role_prompt(model, role)} | ({"task": task} if router is not None and task else {})


def tells_roles(model: SentenceTransformer) -> bool:
    """Return whether a query and a document of the same text differ for the model."""
    return router_of(model) is not None or len({role_prompt(model, role) for role in PAIR}) > 1


def options_by_role(model: SentenceTransformer) -> Mapping[str, Mapping[str, Any]]:
    """Return `role_options` of both roles."""
    return {role: role_options(model, role) for role in PAIR}


def set_role_prompts(model: SentenceTransformer, given: RolePrompts) -> None:
    """Put the prompts of queries and documents into the model, where they are saved with it.

    Those that are not given are the model's own, also under the names `query` and `document`, by which
    `encode_query` and `encode_document` look for them. Nothing changes where no roles were asked for.

    Raises:
        InputError: A prompt has text after the text's place, or the model renders texts by a chat template.
    """
    if not given.given:
        return
    for role, prompt in zip(PAIR, (given.query, given.document), strict=True):
        before, _, after = prompt.partition(TEXT_SLOT)
        if after:
            raise InputError(
                f"the {role} prompt {prompt!r} has text after {TEXT_SLOT}; the prompt of a role can only "
                "stand before the text"
            )
        if before and has_template(model):
            raise InputError(
                f"this model renders every text by a chat template, which takes no {role} prompt; leave "
                "that out"
            )
        model.prompts[role] = before or role_prompt(model, role) or ""


def roles_sentence(model: SentenceTransformer) -> str:
    """Return in a sentence how pairs with roles are read."""
    query, document = (role_prompt(model, role) for role in PAIR)
    said = f"text1 is read as a query{_behind(query)}, text2 as a document{_behind(document)}"
    if router_of(model) is not None:
        return f"{said}, each by its own route"
    if not tells_roles(model):
        return f"{said}; the model reads both alike: --query-prompt and --document-prompt tell them apart"
    return said


def _behind(prompt: str | None) -> str:
    return f" (prompt {prompt!r})" if prompt else ""
