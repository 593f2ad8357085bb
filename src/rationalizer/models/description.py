"""The description of a model without its weights, as in `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from rationalizer.data.corpus import Target, Task
from rationalizer.data.labels import Labels
from rationalizer.models.atomic_files import RECOPY_REMEDY, verify_record
from rationalizer.models.config import OPTIONS, Config
from rationalizer.models.folder_format import FORMAT
from rationalizer.models.format_upgrade import READABLE_FORMATS, upgrade_description
from rationalizer.models.json_schema import find_mismatch
from rationalizer.models.setting_conflicts import resolve_rationales
from rationalizer.nn import EXTRACTORS, Encoder, HighlightModel, Model, PairModel, Rationales, encoder_class

LabelType = Literal["str", "int", "float", "bool"]

TASKS = set(get_args(Task))
TARGET = {"sigmoid?": bool, "mean?": float, "deviation?": float}
CONFIG_SCHEMA = {
    "format": int,
    "task": TASKS,
    "classes": [str],
    "target": TARGET,
    "targets?": [{"name": str, "classes": [str], "target": TARGET}],
    "label_type": set(get_args(LabelType)),
    "columns": {str: str},
    "config": {
        "method": str,
        "pairs": bool,
        "options": dict,
        "encoder_options": dict,
        "objective_options": dict,
        str: object,
    },
}


@dataclass(frozen=True)
class Description:
    """The description of a model without its weights: settings, task, classes."""

    config: Config
    task: Task
    classes: tuple[str, ...]
    target: dict[str, Any] = field(default_factory=dict)  # arguments of `nn.Regression`
    label_type: LabelType = "str"  # the type of the class labels before they became names
    # The columns of the file or table it was trained on: {"text": "review"}.
    columns: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()  # for the task "multi-target"
    target_settings: tuple[dict[str, Any], ...] = ()  # `target` of each

    @property
    def labels(self) -> Labels:
        """The encoding of labels."""
        return Labels(self.task, self.classes, self.targets)

    @property
    def rationales(self) -> Rationales:
        """Whether all labels share a rationale."""
        return resolve_rationales(self.config, len(self.labels.names))

    @property
    def pairs(self) -> bool:
        return self.config.pairs

    def build_encoder_options(self) -> Any:
        return encoder_class(self.config.encoder).Options(**self.config.encoder_options)

    def network(self) -> dict[str, Any]:
        """Return the arguments of the encoder's network."""
        generates = self.pairs or EXTRACTORS[self.config.method].uses_generator
        return {"dropout": self.config.dropout, "generates": generates, "predicts": not self.pairs}

    def build(self, encoder: Encoder) -> Model:
        config = self.config
        settings: dict[str, Any] = {
            "method": config.method,
            "method_options": config.options,
            "classes": len(self.classes),
            "target": self.target,
            "dropout": config.dropout,
            "pooling": config.pooling,
        }
        if self.pairs:
            # Only annotations say which words have no partner.
            settings |= {"faithful": config.faithful, "premise_context": config.premise_context}
            return PairModel(encoder, **settings, threshold=config.annotation_weight > 0)
        several: dict[str, Any] = {"rationales": self.rationales}
        several["labels"] = len(self.classes) if self.task == "multi-label" else 0
        pairs = zip(self.targets, self.target_settings, strict=True)
        several["targets"] = [(len(target.classes), settings) for target, settings in pairs]
        return HighlightModel(encoder, **settings, **several)

    def to_json(self) -> dict[str, Any]:
        pairs = zip(self.targets, self.target_settings, strict=True)
        targets = [{"name": one.name, "classes": list(one.classes), "target": own} for one, own in pairs]
        return {
            "format": FORMAT,
            "task": self.task,
            "classes": list(self.classes),
            "target": self.target,
            **({"targets": targets} if targets else {}),
            "label_type": self.label_type,
            "columns": dict(self.columns),
            "config": self.config.to_json(),
        }

    @classmethod
    def from_json(cls, stored: Any, path: Path) -> Description:
        if not isinstance(stored, dict) or stored.get("format") not in READABLE_FORMATS:
            found = stored.get("format") if isinstance(stored, dict) else None
            raise ValueError(
                f"{path} has format {found!r}, but this version reads formats {READABLE_FORMATS}; train again, or use "
                "the version that wrote it"
            )
        stored = upgrade_description(verify_record(stored, path))
        try:
            if problem := find_mismatch(stored, CONFIG_SCHEMA):
                raise ValueError(problem)
            config = Config.from_json(stored["config"])
            known: dict[str, Any] = dict.fromkeys(
                config.to_json(), object
            )  # a missing setting must not become a default
            own = {options: dict.fromkeys(getattr(config, options), object) for options in OPTIONS}
            if problem := find_mismatch(stored["config"], known | own, "config"):
                raise ValueError(problem)
            if (stored["task"] in ("regression", "multi-target")) != (not stored["classes"]):
                raise ValueError(f"task {stored['task']!r} cannot have the classes {stored['classes']}")
            if (stored["task"] == "multi-target") != bool(stored.get("targets")):
                raise ValueError(f"task {stored['task']!r} does not fit the targets {stored.get('targets')}")
            if stored["task"] == "regression" and "sigmoid" not in stored["target"]:
                raise ValueError("target.sigmoid is missing")
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}; {RECOPY_REMEDY}") from None
        return cls(
            config,
            stored["task"],
            tuple(stored["classes"]),
            stored["target"],
            stored["label_type"],
            stored["columns"],
            tuple(Target(each["name"], tuple(each["classes"])) for each in stored.get("targets", ())),
            tuple(each["target"] for each in stored.get("targets", ())),
        )
