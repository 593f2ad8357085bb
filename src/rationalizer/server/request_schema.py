"""What `POST /explain` takes and what it answers; what is wrong with a request that it refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, model_validator

from rationalizer.constraints import Constraints, parse_constraints
from rationalizer.models.config import with_constraints
from rationalizer.server.http_errors import Refused
from rationalizer.server.quotas import Quotas
from rationalizer.server.served_models import ServedModel, Text
from rationalizer.suggestions import did_you_mean
from rationalizer.text import Budget

MOST_CONSTRAINTS = 16  # of one request


class ExplainRequest(BaseModel):
    """One of `text`, `texts`, `premise` with `hypothesis`, or `pairs`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"text": "A warm, funny film."},
                {"texts": ["A warm, funny film.", "Dull and far too long."], "budget": "10%"},
                {"text": "A warm film. Too long.", "budget": "60%", "constraints": ["whole-sentences"]},
                {"premise": "A man plays a guitar.", "hypothesis": "A man makes music."},
            ]
        },
    )

    text: str | None = Field(None, description="One text.")
    texts: list[str] | None = Field(None, fail_fast=True, description="Several texts.")
    premise: str | None = Field(None, description="The first text of a pair; needs `hypothesis`.")
    hypothesis: str | None = Field(None, description="The second text of a pair; needs `premise`.")
    pairs: list[tuple[str, str]] | None = Field(
        None, fail_fast=True, description="Several pairs [premise, hypothesis]."
    )
    budget: StrictInt | StrictFloat | str | None = Field(
        None, description='A share ("20%", 0.2) or a count (5) of what may be selected, if not the model\'s own.'
    )
    constraints: list[str | dict[str, Any]] | None = Field(
        None,
        fail_fast=True,
        max_length=MOST_CONSTRAINTS,
        description='What a selection keeps to, such as "spans=2" or "never=stopwords", if not the model\'s own.',
    )
    model: str | None = Field(None, description="A name of GET /models; by default the first that reads such texts.")
    html: bool = Field(False, description="Whether each explanation shall also come as an HTML fragment.")

    @model_validator(mode="before")
    @classmethod
    def _only_known_fields(cls, given: Any) -> Any:
        names = given if isinstance(given, dict) else ()
        unknown = next((name for name in names if name not in cls.model_fields), None)
        if unknown is not None:  # the first; Pydantic would list them all, and a body may hold a million
            remedy = did_you_mean(unknown[:40], cls.model_fields)
            raise Refused(422, unknown, f"there is no field {unknown[:40]!r}", remedy)
        return given


class Answer(BaseModel):
    """Explanations in the order of the texts; their fields are those of `rationalizer.Explanation`."""

    model: str
    budget: int | float
    budget_unit: Literal["share", "count"]
    constraints: list[str]
    explanations: list[dict[str, Any]]


@dataclass(frozen=True)
class Question:
    """A request that can be answered."""

    served: ServedModel
    budget: Budget | None
    constraints: Constraints | None
    field: str  # that holds the texts
    texts: Sequence[Text]

    def place(self, number: int) -> str:
        """The field of one of the texts."""
        return _place(self.field, number)


def understand(request: ExplainRequest, models: Mapping[str, ServedModel], quotas: Quotas) -> Question:
    """The question in a request; Refused where it has none, or too much of it."""
    served = _model(request, models)
    field, texts = _texts(request, served)
    if len(texts) > quotas.items:
        raise Refused(413, field, f"{len(texts)} items, but at most {quotas.items} a request", "send several requests")
    for number, text in enumerate(texts):
        for part in (text,) if isinstance(text, str) else text:
            _check_text(part, _place(field, number), quotas)
    return Question(served, _budget(request.budget, served), _constraints(request.constraints, served), field, texts)


def _place(field: str, number: int) -> str:
    return f"{field}[{number}]" if field in ("texts", "pairs") else field


def _model(request: ExplainRequest, models: Mapping[str, ServedModel]) -> ServedModel:
    """The model that is named; else the first that reads what was sent, single texts or pairs."""
    name = request.model
    if name is None:
        pairs = any(getattr(request, field) is not None for field in ("premise", "hypothesis", "pairs"))
        of_this_kind = (served for served in models.values() if served.model.pairs == pairs)
        return next(of_this_kind, next(iter(models.values())))
    if name not in models:
        raise Refused(422, "model", f"there is no model {name!r}", f"name one of {', '.join(models)}, or leave it out")
    return models[name]


def _texts(request: ExplainRequest, served: ServedModel) -> tuple[str, list[Text]]:
    """The field that holds the texts, and the texts."""
    given = [name for name in ("text", "texts", "pairs") if getattr(request, name) is not None]
    if request.premise is not None or request.hypothesis is not None:
        given.append("premise")
    wanted = ("premise", "pairs") if served.model.pairs else ("text", "texts")
    remedy = (
        'send {"premise": ..., "hypothesis": ...} or {"pairs": [[premise, hypothesis], ...]}'
        if served.model.pairs
        else 'send {"text": ...} or {"texts": [...]}'
    )
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "there is no text to explain"
        raise Refused(400, given[-1] if given else "body", problem, remedy)
    field = given[0]
    if field not in wanted:
        kind = "pairs of texts" if served.model.pairs else "single texts"
        raise Refused(422, field, f"the model {served.name!r} reads {kind}", remedy)
    if field == "premise":
        for part in ("premise", "hypothesis"):
            if getattr(request, part) is None:
                raise Refused(400, part, f"{part} is missing", remedy)
        return field, [(str(request.premise), str(request.hypothesis))]
    if field == "text":
        return field, [str(request.text)]
    texts: list[Text] = list(getattr(request, field))
    if not texts:
        raise Refused(422, field, "the list is empty", "give at least one item")
    return field, texts


def _check_text(text: str, field: str, quotas: Quotas) -> None:
    if len(text) > quotas.characters:
        problem = f"the text has {len(text)} characters, but may have {quotas.characters}"
        raise Refused(413, field, problem, "shorten it, or send its parts")
    if not text.strip():
        raise Refused(422, field, "the text is empty", "give at least one word")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"character {error.start} is half of a surrogate pair ({text[error.start]!a})"
        raise Refused(422, field, problem, "send the text as UTF-8") from None


def _budget(budget: int | float | str | None, served: ServedModel) -> Budget | None:
    if budget is None:
        return None
    try:
        found = Budget.parse(budget)
    except ValueError as error:
        raise Refused(422, "budget", str(error), 'write "20%" or 0.2 for a share, 5 for a count') from None
    if found != served.model.budget and not served.follows_budget:
        method = served.model.config.method
        raise Refused(422, "budget", f"what {method} selects does not follow a budget", "leave the budget out")
    return found


def _constraints(constraints: list[str | dict[str, Any]] | None, served: ServedModel) -> Constraints | None:
    if constraints is None:
        return None
    try:
        found = parse_constraints(constraints)
        own = next((each for each in found if each.per_text), None)
        if own is not None:  # texts of several requests are read together
            raise ValueError(f"{own} marks the texts at hand; use words or a pattern")
        return with_constraints(served.model.config, found).constraints
    except ValueError as error:
        raise Refused(422, "constraints", *problem_and_remedy(error)) from None


def problem_and_remedy(error: Exception) -> tuple[str, str]:
    """The two parts of a message, as all are written that are about constraints."""
    problem, _, remedy = str(error).rpartition("; ")
    return (problem, remedy) if problem else (remedy, "correct the constraints, or leave them out")
