"""Write a static web page on which models run in the browser."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from rationalizer.constraints import CONSTRAINTS, Constraint, parse_constraints
from rationalizer.constraints.stopwords import STOPWORDS
from rationalizer.drawing.colours import STYLE
from rationalizer.export.model_facts import (
    LEARNED,
    ModelFacts,
    NotExportableError,
    bilstm_inputs,
    read_bilstm_weights,
    read_facts,
)
from rationalizer.export.write_export import CARD, kept_rows
from rationalizer.hub import STARTERS, locate
from rationalizer.models.atomic_files import write_bytes, write_json
from rationalizer.text.word_splitting import browser_patterns
from rationalizer.text.word_vectors import WordVectors, quantize

SITE = "site.json"
FILES = "data"  # the folder of the models' files, named by their hashes, so that models share what is equal
PAGE_FILES = Path(__file__).with_name("browser")
SERVER_STYLE = Path(__file__).parent.parent / "server" / "static" / "style.css"
DECODERS = ("sequence", "top-k", "matching")
SITE_CONSTRAINTS = (
    *("spans", "span-length", "whole-sentences", "per-sentence", "must", "never", "ends"),
    *("must-align", "never-align", "monotone", "exactly-k"),
)


def export_site(
    models: Sequence[str | Path],
    out: str | Path,
    *,
    title: str | None = None,
    eight_bit: bool = False,
    words: int | None = None,
    onnxruntime_web: Path | None = None,
) -> Path:
    """Write a folder with a page on which the models explain texts. Any server of files can serve it; nothing is loaded
    from elsewhere.

    Args:
        models: folders; "sentiment", "nli" or "align"; or "org/name" of the Hugging Face Hub.
        out: the folder to write; it must be empty or hold an earlier page, which is replaced.
        title: of the page; the names of the models by default.
        eight_bit, words: as for `export_model`.
        onnxruntime_web: a folder with the npm package of this name, for transformers; by default npm fetches it.

    Returns:
        `out`.

    Raises:
        NotExportableError: if the browser cannot run a model.
    """
    out = Path(out)
    if out.is_dir() and any(out.iterdir()) and not (out / SITE).is_file():
        raise FileExistsError(f"{out} holds other files; choose an empty folder")
    exported = [_export(model, eight_bit=eight_bit, words=words) for model in models]
    names = [facts["name"] for facts, _ in exported]
    for k, (facts, _) in enumerate(exported):
        facts["name"] = names[k] if names.index(names[k]) == k else f"{names[k]}-{names[:k].count(names[k]) + 1}"
    pages = {path.name: path.read_bytes() for path in PAGE_FILES.iterdir() if path.suffix in (".html", ".js")}
    style = (SERVER_STYLE.read_text(encoding="utf-8"), STYLE, (PAGE_FILES / "site.css").read_text(encoding="utf-8"))
    pages["style.css"] = "".join(style).encode()
    if any(facts["encoder"]["kind"] == "transformer" for facts, _ in exported):
        from rationalizer.export.onnxruntime_web import runtime_files

        pages |= {f"onnxruntime/{name}": content for name, content in runtime_files(onnxruntime_web).items()}
    contents = {_address(name, content): content for _, files in exported for name, content in files.items()}
    for old in (out / FILES).glob("*"):  # of an earlier page
        if f"{FILES}/{old.name}" not in contents:
            old.unlink()
    for name, content in (pages | contents).items():
        write_bytes(out / name, content)
    shared = {"patterns": browser_patterns(), "stopwords": sorted(STOPWORDS)}
    described = [{**facts, "files": _describe_files(files)} for facts, files in exported]
    write_json(out / SITE, {"title": title or " · ".join(names), "shared": shared, "models": described})  # last
    return out


def _export(model: str | Path, *, eight_bit: bool, words: int | None) -> tuple[dict[str, Any], dict[str, bytes]]:
    """A model as the page takes it, and its files."""
    folder = locate(model)
    facts = read_facts(folder, str(model) if str(model) in STARTERS else None)
    _check(facts)
    if facts.is_bilstm:
        files, encoder = _export_bilstm(folder, facts, eight_bit, words)
    else:
        if words is not None:
            raise ValueError("words is for models with word vectors, and this one is a transformer; leave it out")
        from rationalizer.export.transformer_graphs import export_transformer

        files, encoder, graphs = export_transformer(folder, facts, eight_bit)
        files |= {f"{name}.onnx": graph.SerializeToString() for name, graph in graphs.items()}
    manifest = facts.manifest
    excluded = manifest["method"]["excluded_constraints"]
    card = folder / CARD
    return {
        **manifest,
        "encoder": encoder,
        "network": facts.network,
        "constraints": [_describe(one) for one in parse_constraints(manifest["constraints"])],
        "offered": [
            _describe(Constraint.parse(text))
            for name in SITE_CONSTRAINTS
            if CONSTRAINTS[name].pairs == manifest["pairs"] and name not in excluded
            for text in CONSTRAINTS[name].suggested
        ],
        "card": card.read_text(encoding="utf-8") if card.is_file() else "",
    }, files


def _describe(constraint: Constraint) -> dict[str, Any]:
    return {"text": str(constraint), "words": constraint.describe(), "own": constraint.to_json()}


def _check(facts: ModelFacts) -> None:
    manifest = facts.manifest
    remedy = "export it with --to onnx, for Python without PyTorch"
    method, rule = manifest["method"], manifest["words"]["rule"]
    if method["decoder"] not in DECODERS:
        raise NotExportableError(f"the method {method['name']} does not run in the browser", remedy)
    if rule == "segments":
        raise NotExportableError("the rule segments, which splits texts by budoux, does not run in the browser", remedy)
    if not facts.is_bilstm:
        tokenizer = facts.encoder["subwords"]["tokenizer"]
        kinds = [(tokenizer[part] or {}).get("type") for part in ("normalizer", "pre_tokenizer", "model")]
        if kinds != ["BertNormalizer", "BertPreTokenizer", "WordPiece"]:
            raise NotExportableError("the tokenizer is not that of BERT and does not run in the browser", remedy)
    unknown = next((one["name"] for one in manifest["constraints"] if one["name"] not in SITE_CONSTRAINTS), None)
    if unknown is not None:
        raise NotExportableError(f"the constraint {unknown} does not run in the browser", remedy)


def _export_bilstm(
    folder: Path, facts: ModelFacts, eight_bit: bool, words: int | None
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The model's own weights, which the page evaluates itself: ONNX Runtime alone is larger than these files."""
    stored = read_bilstm_weights(folder)
    inputs = bilstm_inputs(facts, stored)
    learned, vectors = stored.learned, stored.vectors
    weights = (folder / "model.safetensors").read_bytes()
    if eight_bit and learned.scales is None:
        codes, scales = quantize(learned.codes)
        weights = save({**stored.weights, f"{LEARNED}.codes": codes, f"{LEARNED}.scales": scales})
    files = {"model.safetensors": weights, "vocabulary.json": json.dumps(inputs.vocabulary.words).encode()}
    if vectors is not None:
        rows = kept_rows(inputs, words, len(vectors))
        kept = WordVectors(tuple(vectors.words[row] for row in rows), vectors.codes[rows], vectors.scales[rows])
        files["vectors.safetensors"] = save(kept.to_arrays())
    encoder = {"kind": "vectors", "size": int(learned.codes.shape[1]), "lower": inputs.vocabulary.lower}
    return files, {**encoder, "pretrained": vectors is not None}


def _address(name: str, content: bytes) -> str:
    return f"{FILES}/{sha256(content).hexdigest()[:20]}{Path(name).suffix}"


def _describe_files(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The browser checks the hash of each file that it loads."""
    return {
        name: {
            "url": _address(name, content),
            "bytes": len(content),
            "integrity": f"sha256-{b64encode(sha256(content).digest()).decode()}",
        }
        for name, content in files.items()
    }
