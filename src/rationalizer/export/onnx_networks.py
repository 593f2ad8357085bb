"""Exported graphs in ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.export.model_facts import EXPORT_FORMAT
from rationalizer.export.word_inputs import Feeds, Inputs, Table, VectorInputs
from rationalizer.models.atomic_files import read_json
from rationalizer.text import Vocabulary

REMEDY = "export the model again"
ENTRIES: tuple[str, ...] = ("pairs", "task", "classes", "label_type", "columns", "method", "budget", "calibration")
ENTRIES += (
    "languages",
    "constraints",
    "faithful",
    "premise_context",
    "words",
    "encoder",
    "graphs",
    "files",
    "examples",
)


class OnnxNetworks:
    """The graphs of an exported model.

    Args:
        graphs: the content of the files by graph.
        threads: CPU threads; None: all.
    """

    def __init__(self, graphs: Mapping[str, bytes], threads: int | None) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError(
                'an exported model needs ONNX Runtime: pip install ".[onnx]" in a checkout, or pip install onnxruntime'
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 3
        make: Any = onnxruntime.InferenceSession
        self._sessions = {
            name: make(content, options, providers=["CPUExecutionProvider"]) for name, content in graphs.items()
        }

    def _run(self, name: str, feeds: Feeds) -> NDArray[np.float32]:
        (result,) = self._sessions[name].run(None, feeds)
        return result

    def states(self, feeds: Feeds) -> Feeds:
        return {"states": self._run("states", feeds)}

    def scores(self, feeds: Feeds) -> NDArray[np.float32]:
        return self._run("scores", feeds)

    def output(self, feeds: Feeds) -> NDArray[np.float32]:
        return self._run("output", feeds)


def load_export(folder: Path, threads: int | None) -> tuple[dict[str, Any], Inputs, OnnxNetworks]:
    """Read the folder of an exported model: its manifest, inputs and graphs.

    Raises:
        ValueError: if a file is missing, damaged or of another format.
    """
    path = folder / "manifest.json"
    manifest = read_json(path, REMEDY)
    if not isinstance(manifest, dict) or manifest.get("format") != EXPORT_FORMAT:
        raise ValueError(f"{path} is not of format {EXPORT_FORMAT}, which this version reads; {REMEDY}")
    missing = [name for name in ENTRIES if name not in manifest]
    if missing:
        raise ValueError(f"{path} lacks {missing[0]!r}; {REMEDY}")
    try:
        content = {name: _read(folder / name, facts) for name, facts in manifest["files"].items()}
        encoder, graphs = manifest["encoder"], manifest["graphs"]
        if encoder["kind"] == "transformer":
            from rationalizer.export.subword_inputs import SubwordInputs

            inputs: Inputs = SubwordInputs(encoder, content[encoder["tokenizer"]].decode())
        else:
            inputs, threads = _vector_inputs(encoder, content), threads or 1
        loaded = {name: content[graph["file"]] for name, graph in graphs.items()}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} lacks {error}; {REMEDY}") from None
    return manifest, inputs, OnnxNetworks(loaded, threads)


def _read(path: Path, facts: Mapping[str, Any]) -> bytes:
    if not path.is_file():
        raise ValueError(f"{path} is missing; {REMEDY}")
    content = path.read_bytes()
    if sha256(content).hexdigest() != facts["sha256"]:
        raise ValueError(f"{path} is damaged: wrong checksum; {REMEDY}")
    return content


def _vector_inputs(encoder: Mapping[str, Any], content: Mapping[str, bytes]) -> VectorInputs:
    def table(entry: Mapping[str, Any]) -> Table:
        rows, size, raw = entry["rows"], encoder["size"], content[entry["file"]]
        if entry["dtype"] == "float32":
            return Table(np.frombuffer(raw, "<f4").reshape(rows, size))
        codes = np.frombuffer(raw, np.int8, rows * size).reshape(rows, size)
        return Table(codes, np.frombuffer(raw, "<f4", offset=rows * size))

    pretrained = encoder["pretrained"]
    return VectorInputs(
        Vocabulary(json.loads(content[encoder["vocabulary"]]), lower=encoder["lower"]),
        table(encoder["learned"]),
        () if pretrained is None else json.loads(content[pretrained["words"]]),
        None if pretrained is None else table(pretrained),
        closes_gaps=encoder["gaps"] == "closed",
    )
