"""Write the folder of an exported model."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from rationalizer.export.model_facts import ModelFacts, bilstm_inputs, read_bilstm_weights, read_facts
from rationalizer.export.word_inputs import Table, VectorInputs
from rationalizer.hub import STARTERS, locate
from rationalizer.models.atomic_files import write_bytes, write_json
from rationalizer.text.word_vectors import quantize

MANIFEST, CARD = "manifest.json", "README.md"
TYPE_NAMES = {1: "float32", 7: "int64"}  # of ONNX


def export_model(model: str | Path, out: str | Path, *, eight_bit: bool = False, words: int | None = None) -> Path:
    """Export a saved model to ONNX: graphs, vectors and rules in one folder, which needs neither PyTorch nor the model.

    Args:
        model: a model's folder; "sentiment", "nli" or "align"; or "org/name" of the Hugging Face Hub.
        out: the folder to write; it must be empty or hold an earlier export, which is replaced.
        eight_bit: store large tables of weights in 8 bits, which makes the files of a transformer four times smaller.
        words: keep only this many of the most frequent pretrained word vectors, and those of the words of the training
            texts. Other words are then unknown.

    Returns:
        `out`.

    Raises:
        NotExportableError: if the model has a part that needs PyTorch.
    """
    folder, out = locate(model), Path(out)
    _check_folder(out)
    facts = read_facts(folder, str(model) if str(model) in STARTERS else None)
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError('export needs the package onnx: pip install ".[onnx]" in a checkout') from error
    if facts.is_bilstm:
        files, encoder, graphs = _export_bilstm(folder, facts, eight_bit, words)
    else:
        if words is not None:
            raise ValueError("words is for models with word vectors, and this one is a transformer; leave it out")
        from rationalizer.export.transformer_graphs import export_transformer

        files, encoder, graphs = export_transformer(folder, facts, eight_bit)
    files |= {f"{name}.onnx": graph.SerializeToString() for name, graph in graphs.items()}
    if (folder / CARD).is_file():
        files[CARD] = (folder / CARD).read_bytes()
    manifest = {
        **facts.manifest,
        "encoder": encoder,
        "graphs": {name: _describe_graph(name, graph) for name, graph in graphs.items()},
        "weights": "8bit" if eight_bit else "float32",
        "files": {
            name: {"bytes": len(content), "sha256": sha256(content).hexdigest()} for name, content in files.items()
        },
    }
    for name, content in files.items():
        write_bytes(out / name, content)
    write_json(out / MANIFEST, manifest)  # last: without it, the folder is no export
    return out


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; choose a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise FileExistsError(f"{out} holds other files; choose an empty folder")


def _describe_graph(name: str, graph: Any) -> dict[str, Any]:
    def values(items: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": item.name,
                "dtype": TYPE_NAMES[item.type.tensor_type.elem_type],
                "shape": [axis.dim_param or axis.dim_value for axis in item.type.tensor_type.shape.dim],
            }
            for item in items
        ]

    return {"file": f"{name}.onnx", "inputs": values(graph.graph.input), "outputs": values(graph.graph.output)}


def _export_bilstm(
    folder: Path, facts: ModelFacts, eight_bit: bool, words: int | None
) -> tuple[dict[str, bytes], dict[str, Any], dict[str, Any]]:
    from rationalizer.export.bilstm_graphs import bilstm_graphs

    stored = read_bilstm_weights(folder)
    inputs = bilstm_inputs(facts, stored)
    learned = stored.learned
    if eight_bit and learned.scales is None:
        learned = Table(*quantize(learned.codes))
    files = {"vocabulary.json": _to_json(inputs.vocabulary.words), "learned.bin": _table_bytes(learned)}
    encoder = {
        "kind": "vectors",
        "size": int(learned.codes.shape[1]),
        "lower": inputs.vocabulary.lower,
        "gaps": "closed" if inputs.closes_gaps else "kept",
        "vocabulary": "vocabulary.json",
        "learned": _describe_table(learned, "learned.bin"),
        "pretrained": None,
    }
    if stored.vectors is not None:
        rows = kept_rows(inputs, words, len(stored.vectors))
        table = Table(stored.vectors.codes[rows], stored.vectors.scales[rows])
        files["pretrained.json"] = _to_json([stored.vectors.words[row] for row in rows])
        files["pretrained.bin"] = _table_bytes(table)
        encoder["pretrained"] = {"words": "pretrained.json", **_describe_table(table, "pretrained.bin")}
    return files, encoder, bilstm_graphs(stored.weights, facts.network, pairs=facts.manifest["pairs"])


def kept_rows(inputs: VectorInputs, words: int | None, total: int) -> list[int]:
    """The rows of the most frequent words, and of those of the training texts."""
    if words is None:
        return list(range(total))
    assert inputs.lookup is not None
    used = {row for word in inputs.vocabulary.words for row in inputs.lookup.find_rows(word)}
    return sorted(used | set(range(min(words, total))))


def _to_json(words: Any) -> bytes:
    return json.dumps(list(words)).encode()


def _table_bytes(table: Table) -> bytes:
    if table.scales is None:
        return table.codes.astype("<f4").tobytes()
    return table.codes.tobytes() + table.scales.astype("<f4").tobytes()


def _describe_table(table: Table, name: str) -> dict[str, Any]:
    dtype = "float32" if table.scales is None else "int8"
    return {"file": name, "rows": len(table.codes), "dtype": dtype}
