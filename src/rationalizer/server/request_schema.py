"""The request and the answer of `POST /explain`, and the validation of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, model_validator

from rationalizer.constraints import ConstraintConflict, Constraints, parse_constraints
from rationalizer.export.exported_model import ExportedModel
from rationalizer.server.http_errors import RequestError
from rationalizer.server.quotas import Quotas
from rationalizer.server.served_models import ServedModel, Text
from rationalizer.suggestions import did_you_mean
from rationalizer.text import Budget
from rationalizer.text.errors import InputError
from rationalizer.work_limits import RequestTime, TimeLimitError

MAX_CONSTRAINTS = 16  # of one request
SEARCH_SECONDS = 1.0  # for all patterns of a request in all its texts; nobody else is answered in the meantime
BATCH_SECONDS = 3.0  # for the texts of a request that are in one batch; the same
TOTAL_SECONDS = 30.0  # for all texts of a request


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
        None,
        description='A share ("20%", 0.2) or a number (5) of words, an average ("18% on average, 8% to 35%"), or '
        '"enough, at most 40%, 90% certain"; by default the model\'s own budget.',
    )
    constraints: list[str | dict[str, Any]] | None = Field(
        None,
        fail_fast=True,
        max_length=MAX_CONSTRAINTS,
        description='Constraints, such as "spans=2" or "never=stopwords"; by default the model\'s own.',
    )
    model: str | None = Field(None, description="A name from GET /models; by default the first for this kind of text.")
    html: bool = Field(False, description="Whether to add an HTML fragment to each explanation.")
    reasons: bool | None = Field(
        None,
        description="Whether to compute what each selected word speaks for, and how much (`words`); by default for "
        "one text, but not for several.",
    )
    record: bool = Field(
        False, description="Whether to add a decision record, which `rationalizer verify` checks, to each explanation."
    )

    @model_validator(mode="before")
    @classmethod
    def _check_field_names(cls, values: Any) -> Any:
        names = values if isinstance(values, dict) else ()
        unknown = next((name for name in names if name not in cls.model_fields), None)
        if unknown is not None:  # only the first: Pydantic would list all of them, and a body may hold a million
            remedy = did_you_mean(unknown[:40], cls.model_fields)
            raise RequestError(422, unknown, f"there is no field {unknown[:40]!r}", remedy)
        return values


class ExplainAnswer(BaseModel):
    """Explanations in the order of the texts; their fields are those of `rationalizer.Explanation`."""

    model: str
    budget: int | float
    budget_unit: Literal["share", "count", "average", "enough"]
    least: float | None = None  # of "average": the bounds on each text
    most: float | None = None
    certainty: float | None = None  # of "enough"
    constraints: list[str]
    explanations: list[dict[str, Any]]


@dataclass(frozen=True)
class ExplainTask:
    """A valid request: the texts to explain, and how."""

    model: ServedModel
    budget: Budget | None
    constraints: Constraints | None
    field: str  # of the request, that holds the texts
    texts: Sequence[Text]
    record: bool = False  # whether explanations have a decision record
    reasons: bool = False  # whether selected words have weights

    def time_limit(self) -> RequestTime | None:
        """Return the time limit of a request that may take long; None for others, which share batches."""
        model = self.model.model
        constraints = model.constraints if self.constraints is None else self.constraints
        budget = model.budget if self.budget is None else self.budget
        has_pattern = any(getattr(constraint, "pattern", None) is not None for constraint in constraints)
        is_slow = isinstance(model, ExportedModel) and constraints  # in Python, without compiled kernels
        if not (has_pattern or is_slow or budget.kind == "enough"):
            return None
        return RequestTime(searches=SEARCH_SECONDS, batch=BATCH_SECONDS, total=TOTAL_SECONDS)

    def field_of(self, index: int) -> str:
        """Return the name of one text in the request."""
        return _indexed(self.field, index)


def validate(request: ExplainRequest, models: Mapping[str, ServedModel], quotas: Quotas) -> ExplainTask:
    """Raise `RequestError` if the request is invalid or too large."""
    model = _select_model(request, models)
    field, texts = _select_texts(request, model)
    if len(texts) > quotas.items:
        problem = f"{len(texts)} items, but at most {quotas.items} per request"
        raise RequestError(413, field, problem, "send several requests")
    for index, text in enumerate(texts):
        for part in (text,) if isinstance(text, str) else text:
            check_text(part, _indexed(field, index), quotas.characters)
    budget, constraints = _parse_budget(request.budget, model), _parse_constraints(request.constraints, model)
    if budget is not None and budget.kind in ("average", "enough"):
        try:
            model.check(budget, constraints)
        except ValueError as error:
            raise RequestError(422, "budget", str(error), "use a fixed share") from None
    if request.record:
        _check_recordable(model, constraints)
    reasons = field in ("text", "premise") if request.reasons is None else request.reasons
    return ExplainTask(model, budget, constraints, field, texts, request.record, reasons)


def _indexed(field: str, index: int) -> str:
    return f"{field}[{index}]" if field in ("texts", "pairs") else field


def _select_model(request: ExplainRequest, models: Mapping[str, ServedModel]) -> ServedModel:
    """Return the named model; by default the first for the kind of text that was sent, single texts or pairs."""
    name = request.model
    if name is None:
        pairs = any(getattr(request, field) is not None for field in ("premise", "hypothesis", "pairs"))
        suitable = (model for model in models.values() if model.pairs == pairs)
        return next(suitable, next(iter(models.values())))
    if name not in models:
        remedy = f"name one of {', '.join(models)}, or leave it out"
        raise RequestError(422, "model", f"there is no model {name!r}", remedy)
    return models[name]


def _select_texts(request: ExplainRequest, model: ServedModel) -> tuple[str, list[Text]]:
    """Return the field that holds the texts, and the texts."""
    fields = [name for name in ("text", "texts", "pairs") if getattr(request, name) is not None]
    if request.premise is not None or request.hypothesis is not None:
        fields.append("premise")
    if model.pairs:
        allowed, kind = ("premise", "pairs"), "pairs of texts"
        remedy = 'send {"premise": ..., "hypothesis": ...} or {"pairs": [[premise, hypothesis], ...]}'
    else:
        allowed, kind = ("text", "texts"), "single texts"
        remedy = 'send {"text": ...} or {"texts": [...]}'
    if len(fields) != 1:
        problem = f"{' and '.join(fields)} exclude each other" if fields else "there is no text to explain"
        raise RequestError(400, fields[-1] if fields else "body", problem, remedy)
    field = fields[0]
    if field not in allowed:
        raise RequestError(422, field, f"the model {model.name!r} reads {kind}", remedy)
    if field == "premise":
        for part in ("premise", "hypothesis"):
            if getattr(request, part) is None:
                raise RequestError(400, part, f"{part} is missing", remedy)
        return field, [(str(request.premise), str(request.hypothesis))]
    if field == "text":
        return field, [str(request.text)]
    texts: list[Text] = list(getattr(request, field))
    if not texts:
        raise RequestError(422, field, "the list is empty", "give at least one item")
    return field, texts


def check_text(text: str, field: str, characters: int) -> None:
    """Raise `RequestError` if a text is too long, empty, or cannot be encoded in UTF-8."""
    if len(text) > characters:
        problem = f"the text has {len(text)} characters, but at most {characters} are allowed"
        raise RequestError(413, field, problem, "shorten it, or send it in parts")
    if not text.strip():
        raise RequestError(422, field, "the text is empty", "give at least one word")
    check_unicode(field, text)


def check_unicode(field: str, *values: str) -> None:
    """Raise `RequestError` if a value cannot be encoded in UTF-8, and so not be in an answer."""
    for value in values:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            problem = f"character {error.start} is half of a surrogate pair ({value[error.start]!a})"
            raise RequestError(422, field, problem, "send the text as UTF-8") from None


def _parse_budget(value: int | float | str | None, model: ServedModel) -> Budget | None:
    if value is None:
        return None
    try:
        budget = Budget.parse(value)
    except ValueError as error:
        raise RequestError(422, "budget", str(error), 'write "20%" or 0.2 for a share, 5 for a count') from None
    if budget != model.model.budget and not model.traits.follows_budget:
        problem = f"the method {model.traits.method} does not follow a budget"
        raise RequestError(422, "budget", problem, "leave the budget out")
    return budget


def _parse_constraints(values: list[str | dict[str, Any]] | None, model: ServedModel) -> Constraints | None:
    if values is None:
        return None
    try:
        constraints = parse_constraints(values)
        hash(constraints)  # equal constraints share a batch; JSON objects as values cannot
        check_unicode("constraints", *map(str, constraints))
        per_text = next((each for each in constraints if each.per_text), None)
        if per_text is not None:  # texts of several requests are in one batch
            problem = f"{per_text} refers to particular texts"
            raise RequestError(422, "constraints", problem, "use words or a pattern")
        model.check(None, constraints)
        return constraints
    except ValueError as error:
        raise constraint_error(error) from None
    except (TypeError, RecursionError):
        problem = "a setting of a constraint has a value of the wrong type, or is nested too deeply"
        raise RequestError(422, "constraints", problem, "write a constraint as a string, such as 'spans=2'") from None


def _check_recordable(model: ServedModel, constraints: Constraints | None) -> None:
    if isinstance(model.model, ExportedModel):
        problem = "an exported model makes no decision records"
        raise RequestError(422, "record", problem, "serve the model that was exported")
    from rationalizer.records.recorder import write_constraint

    try:
        for constraint in model.model.constraints if constraints is None else constraints:
            write_constraint(constraint)
    except InputError as error:
        raise RequestError(422, "record", error.problem, error.remedy) from None


def constraint_error(error: ValueError) -> RequestError:
    """Return the answer to a request whose constraints or budget cannot be followed."""
    if isinstance(error, TimeLimitError):
        return RequestError(422, "body", error.problem, error.remedy)
    problem, remedy = (error.problem, error.remedy) if isinstance(error, InputError) else (str(error), "")
    if isinstance(error, ConstraintConflict) and error.place:
        problem = f"{error.place} {problem}"
    return RequestError(422, "constraints", problem, remedy or "correct the constraints, or leave them out")
