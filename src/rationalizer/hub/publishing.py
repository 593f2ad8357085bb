"""What a model's folder keeps of its user, and what is left out when it is published: texts, paths, the data's name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any

from rationalizer.models.atomic_files import read_record, write_record
from rationalizer.models.trained_model import ENCODER_FILE, TrainedModel
from rationalizer.nn import ENCODERS
from rationalizer.plurals import count_of
from rationalizer.training.runs import RunRecord

_PATHS = ("encoder", "embeddings", "source", "_name_or_path")  # keys that may hold the path of a local file or folder


def kept_private_data(trained: TrainedModel, record: RunRecord | None = None) -> str:
    """Return a sentence on the texts and paths that the saved model contains; empty if there are none.

    `record` is the run that trained it, if its scores are saved, too.
    """
    kept = []
    if trained.examples:
        kept.append(
            f"{count_of(len(trained.examples), 'text')} of the data in examples.json (keep_examples=0 stores none)"
        )
    settings = {"encoder": trained.config.encoder, **trained.config.encoder_options}
    if settings != _without_paths(settings):
        kept.append("local paths in config.json")
    if record is not None and record["data"]["source"] is not None:
        kept.append("the origin of the data in scores.json")
    if not kept:
        return ""
    return f"The folder keeps {', '.join(kept)}. push_to_hub leaves this out; remove it before you share the folder."


def without_private_data(trained: TrainedModel, *, include_examples: bool) -> TrainedModel:
    """The model without the sample texts of its dev data, unless asked for, and with names in place of local paths.

    The paths are those of the pretrained encoder and of the word vectors, which only another training would read.
    """
    config = trained.config
    config = replace(config, encoder=name_of(config.encoder), encoder_options=_without_paths(config.encoder_options))
    description = replace(trained.description, config=config)
    return replace(trained, description=description, examples=trained.examples if include_examples else ())


def record_without_private_data(record: RunRecord) -> RunRecord:
    """The scores of a run without the origin of its data and without paths."""
    return {**record, "data": {**record["data"], "source": None}, "config": _without_paths(record["config"])}


def remove_paths_from_encoder(folder: Path) -> None:
    """Replace local paths in the encoder's file of a saved model by names."""
    path = folder / ENCODER_FILE
    stored = _without_paths(read_record(path))
    if isinstance(stored.get("config"), dict):
        stored["config"] = _without_paths(stored["config"])
    write_record(path, stored)


def _without_paths(settings: Any) -> dict[str, Any]:
    return {
        key: name_of(value) if key in _PATHS and isinstance(value, str) else value for key, value in settings.items()
    }


def name_of(source: str) -> str:
    """The last component of a local path; names, such as org/model on the Hub, stay as they are."""
    is_hub_name = source.count("/") == 1 and not source.startswith((".", "/", "~")) and "\\" not in source
    if is_hub_name and not Path(source).exists():
        return source
    name = PureWindowsPath(source).name  # splits at / and at \
    return f"{name}-local" if name in ENCODERS and name != source else name
