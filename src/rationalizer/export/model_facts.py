"""What an exported model is, from the files of the model's folder, without PyTorch; or why it cannot be exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer import __version__
from rationalizer.export.word_inputs import Table, VectorInputs
from rationalizer.models.atomic_files import read_arrays, read_json, read_record, verify_record
from rationalizer.models.folder_format import FORMAT
from rationalizer.text import BUNDLED, Budget, Vocabulary, WordVectors, load_vectors
from rationalizer.text.errors import InputError
from rationalizer.text.word_splitting import rule_version

EXPORT_FORMAT = 1
LEARNED = "encoder.learned.weight"
_LINEAR = {"decoder": "sequence", "follows_budget": True, "supports_constraints": True, "supports_average": True}
_TOP_K = {"decoder": "top-k", "follows_budget": True, "supports_constraints": True, "supports_average": False}
_SPARSEMAX = {"decoder": "sparsemax", "follows_budget": False, "supports_constraints": False, "supports_average": False}
_MATCHING = {"decoder": "matching", "supports_constraints": True, "supports_average": False}
TEXT_METHODS: Mapping[str, Mapping[str, Any]] = {
    "spectra": _LINEAR,
    "pair-budget": _LINEAR,
    "sfe": _TOP_K,
    "sfe-baseline": _TOP_K,
    "gumbel": _TOP_K,
    "sparsemax": _SPARSEMAX,
}
PAIR_METHODS: Mapping[str, Mapping[str, Any]] = {
    "at-most-one": {**_MATCHING, "follows_budget": False, "complete": False},
    "budget": {**_MATCHING, "follows_budget": True, "complete": False},
    "xor-at-most-one": {
        **_MATCHING,
        "follows_budget": False,
        "complete": True,
        "excluded_constraints": ["exactly-k"],
    },
}


class NotExportableError(InputError):
    """A model that only PyTorch can compute. The fields are `problem` and `remedy`."""


@dataclass(frozen=True)
class ModelFacts:
    """The facts of a model.

    Args:
        manifest: the entries of `manifest.json` that describe the model, not the files.
        network: the settings of the networks between inputs and outputs.
        encoder: the content of `encoder.json`.
    """

    manifest: dict[str, Any]
    network: dict[str, Any]
    encoder: dict[str, Any]

    @property
    def is_bilstm(self) -> bool:
        return "vocabulary" in self.encoder


def read_facts(folder: Path, name: str | None = None) -> ModelFacts:
    """Read the facts of a saved model.

    Raises:
        NotExportableError: if the model needs PyTorch; the message names the part and what to do.
        ValueError: if a file is damaged.
    """
    path = folder / "config.json"
    if not path.is_file():
        if any((folder / name).is_file() for name in ("manifest.json", "site.json")):
            raise FileNotFoundError(f"{folder} is itself an export; export the model that it was made from")
        raise FileNotFoundError(f"{folder} holds no trained model: config.json missing")
    stored = read_json(path)
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise NotExportableError(
            f"{path} was written by another version", "load the model with PyTorch and save it again"
        )
    stored = verify_record(stored, path)
    config, encoder = stored["config"], read_record(folder / "encoder.json")
    history = read_record(folder / "history.json")
    method = _describe_method(config)
    if stored["task"] not in ("classification", "regression"):
        raise NotExportableError(f"the task {stored['task']!r} cannot be exported", "use PyTorch for this model")
    if config.get("rationales") in ("per-label", "disjoint"):
        raise NotExportableError("a model with a rationale for each class cannot be exported", "use PyTorch for it")
    if config["encoder"] != "bilstm" and "subwords" not in encoder:
        raise NotExportableError(
            f"the encoder {config['encoder']!r} cannot be exported", "use a BiLSTM or a transformer"
        )
    for constraint in config["constraints"]:
        check_constraint_class(constraint["name"])
    check_budget(Budget.parse(config["budget"]), config["constraints"], pairs=config["pairs"])
    rule = encoder["rule"]
    manifest = {
        "format": EXPORT_FORMAT,
        "name": name or folder.resolve().name,
        "version": __version__,
        "pairs": config["pairs"],
        "task": stored["task"],
        "classes": stored["classes"],
        "label_type": stored["label_type"],
        "columns": stored["columns"],
        "method": method,
        "budget": config["budget"],
        "calibration": history.get("calibration"),
        "languages": history.get("languages"),
        "constraints": config["constraints"],
        "faithful": config["faithful"],
        "premise_context": config["premise_context"],
        "words": {
            "rule": rule,
            "rule_sha256": sha256(rule_version(rule).encode()).hexdigest(),
            "punctuation": encoder["punctuation"],
            "sentences": encoder["sentences"],
        },
        "examples": _examples(folder),
        "facts": {},
    }
    if (starter := folder / "starter.json").is_file():
        manifest["facts"] = {key: value for key, value in read_json(starter).items() if key != "examples"}
    options = config["encoder_options"]
    regression = {"mean": 0.0, "deviation": 1.0, **stored["target"]} if stored["task"] == "regression" else None
    network = {
        "attention": method["decoder"] == "sparsemax",
        "pooling": config["pooling"],
        "target": regression,
        "faithful": config["faithful"],
        "closes_premise": config["faithful"] and config["premise_context"] == "aligned",
        "threshold": config["pairs"] and config["annotation_weight"] > 0,
        "word_scores": options.get("word_scores", False),
        "word_sums": options.get("word_sums", False),
        "closed_gaps": options["gaps"] == "closed",
        "predictor": "encoder.generator" if options["shared"] else "encoder.predictor",
        "options": options,
    }
    return ModelFacts(manifest, network, encoder)


def check_constraint_class(name: str) -> None:
    """Raise an error if a constraint needs the factor graphs of `graph`."""
    from rationalizer.constraints import FactorConstraint, PairFactorConstraint, get_constraint

    if issubclass(get_constraint(name), (FactorConstraint, PairFactorConstraint)):
        raise NotExportableError(f"the constraint {name} consists of factors, which need PyTorch", "leave it out")


def check_budget(budget: Budget, constraints: Sequence[Any], *, pairs: bool) -> None:
    """Raise an error if the budget is of a kind that needs PyTorch."""
    if budget.kind == "enough" or (budget.kind == "average" and (pairs or constraints)):
        among = ""
        if budget.kind == "average":
            among = " of links" if pairs else " with constraints"
        raise NotExportableError(f"the budget {budget}{among} needs PyTorch", "set a fixed share, such as 20%")


def _describe_method(config: Mapping[str, Any]) -> dict[str, Any]:
    name, options = config["method"], config["options"]
    methods = PAIR_METHODS if config["pairs"] else TEXT_METHODS
    if name not in methods:
        kind = "pairs of texts" if config["pairs"] else "single texts"
        raise NotExportableError(
            f"the method {name} for {kind} cannot be exported: it selects by an algorithm that needs PyTorch",
            f"exported are {', '.join(methods)}",
        )
    if options.get("decoding", "top-k") != "top-k":
        raise NotExportableError(
            f"the method {name} with decoding={options['decoding']} cannot be exported", "train it with decoding=top-k"
        )
    method = {"name": name, "excluded_constraints": [], **methods[name]}
    if method["decoder"] == "sequence":
        method["transition"] = options["transition"]
    if method["decoder"] == "sparsemax":
        method["temperature"] = options["temperature"]
    return method


def _examples(folder: Path) -> list[Any]:
    if (folder / "starter.json").is_file():
        return list(read_json(folder / "starter.json")["examples"])
    path = folder / "examples.json"
    texts = read_record(path)["examples"] if path.is_file() else []
    return [each[0] if len(each) == 1 else each for each in texts]


@dataclass(frozen=True)
class BiLSTMWeights:
    """The weights of a BiLSTM model by name, in single precision, and its vectors."""

    weights: dict[str, NDArray[np.float32]]
    learned: Table
    vectors: WordVectors | None


def read_bilstm_weights(folder: Path) -> BiLSTMWeights:
    """Read the weights of a BiLSTM model; 8-bit tables of a compact model stay in 8 bits."""
    arrays, _ = read_arrays(folder / "model.safetensors")
    if f"{LEARNED}.codes" in arrays:
        learned = Table(arrays.pop(f"{LEARNED}.codes"), arrays.pop(f"{LEARNED}.scales"))
    else:
        learned = Table(arrays.pop(LEARNED).astype(np.float32))
    vectors = None
    if (path := folder / "vectors.safetensors").is_file():
        tables, state = read_arrays(path)
        named = isinstance(state, dict) and state.get("vectors") == BUNDLED
        vectors = load_vectors(BUNDLED) if named else WordVectors.from_arrays(tables, path)
    return BiLSTMWeights(float_weights(arrays), learned, vectors)


def float_weights(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """The weights in single precision, from those of a compact model or of any other."""
    weights = {}
    for name, array in arrays.items():
        if name.endswith(".codes"):
            name = name.removesuffix(".codes")
            weights[name] = array * arrays[f"{name}.scales"][:, None]
        elif not name.endswith(".scales"):
            weights[name] = array.astype(np.float32)
    return weights


def bilstm_inputs(facts: ModelFacts, stored: BiLSTMWeights) -> VectorInputs:
    vectors = stored.vectors
    return VectorInputs(
        Vocabulary.from_json(facts.encoder["vocabulary"]),
        stored.learned,
        () if vectors is None else vectors.words,
        None if vectors is None else Table(vectors.codes, vectors.scales),
        closes_gaps=facts.network["closed_gaps"],
    )
