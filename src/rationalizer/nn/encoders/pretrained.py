"""Load transformers from the Hugging Face Hub or a folder: safetensors only, and no code but that of transformers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rationalizer.text import DataError
from rationalizer.text.subwords import Subwords

UNBOUNDED = 4096  # tokens per row, for networks without a limit
ATTENTION = ("eager", "sdpa", "flash_attention_2")  # transformers downloads and runs "owner/name" as a kernel


@dataclass(frozen=True)
class Pretrained:
    """A pretrained network with its description and its tokenizer."""

    network: Any  # a module of transformers
    config: dict[str, Any]
    subwords: Subwords
    capacity: int  # the largest number of tokens per row, including special ones
    source: str  # a name on the Hub, or a folder
    revision: str | None  # the commit of the name

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "revision": self.revision,
            "capacity": self.capacity,
            "config": self.config,
            "subwords": self.subwords.to_json(),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], dropout: float = 0.0) -> Pretrained:
        """The network of a description; its weights are loaded later."""
        transformers = _transformers("this model")
        settings = dict(stored["config"])
        _check_config(settings, stored["source"])
        with _quiet(transformers):
            config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
            _set_dropout(config, dropout)
            network = _encoder(transformers.AutoModel.from_config(config, trust_remote_code=False))
        subwords = Subwords.from_json(stored["subwords"])
        return cls(
            network, stored["config"], subwords, int(stored["capacity"]), stored["source"], stored.get("revision")
        )


def load_pretrained(source: str, revision: str | None = None, dropout: float = 0.1) -> Pretrained:
    """Load a network by name or folder, with this dropout in training.

    Raises:
        DataError: there is none, or it cannot be used: no fast tokenizer, no safetensors, a decoder, a kernel from the
            Hub.
        ImportError: the extra "transformers" is not installed.
    """
    transformers = _transformers(f"the encoder {source!r}")
    folder = Path(source).expanduser()
    local = folder.is_dir()
    if not local and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise DataError(f"the folder of the encoder {source!r} does not exist")
    options: dict[str, Any] = {"trust_remote_code": False}
    location = str(folder) if local else source
    if local and revision is not None:
        raise DataError(
            f"revision={revision!r} is for names on the Hugging Face Hub, and {source} is a folder; leave it out"
        )
    try:
        with _quiet(transformers, downloads=not local):
            pinned = None if local else _commit(transformers, source, revision)
            if not local:
                options["revision"] = pinned
            _check_files(transformers, location, source, options.get("revision"))
            config = transformers.AutoConfig.from_pretrained(location, **options)
            _set_dropout(config, dropout)
            tokenizer = transformers.AutoTokenizer.from_pretrained(location, use_fast=True, **options)
            model, loading_info = transformers.AutoModel.from_pretrained(
                location, config=config, use_safetensors=True, output_loading_info=True, **options
            )
    except DataError:
        raise
    except Exception as error:  # three libraries and the network raise errors of many types
        raise DataError(_describe_failure(source, local, error)) from error
    if not getattr(tokenizer, "is_fast", False):
        raise DataError(f"the encoder {source!r} has no fast tokenizer (tokenizer.json); choose one that has")
    missing = [name for name in loading_info["missing_keys"] if "pooler" not in name]
    if missing:
        raise DataError(f"the weights of {source!r} lack {len(missing)} tensors of its encoder, such as {missing[0]}")
    network = _encoder(model)
    _check_network(network, source)
    stored = {**config.to_dict(), "model_type": config.model_type}
    return Pretrained(
        network, stored, Subwords.from_tokenizer(tokenizer), _capacity(network, tokenizer), source, pinned
    )


def freeze(network: Any, count: int, source: str) -> None:
    """Freeze the `count` lowest layers and the embeddings."""
    if count == 0:
        return
    depth = network.config.num_hidden_layers
    lists = (module for module in network.modules() if isinstance(module, nn.ModuleList))
    layers = next((module for module in lists if len(module) == depth), None)
    if layers is None or count > depth:
        why = "uses the same layer several times" if layers is None else f"has {depth} layers"
        raise DataError(
            f"frozen_layers={count}, but {source!r} {why}; set generator_rate=0 or predictor_rate=0 instead"
        )
    for name, parameter in network.named_parameters():
        if "embed" in name:
            parameter.requires_grad_(False)
    for layer in layers[:count]:
        layer.requires_grad_(False)


def _transformers(what: str) -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ImportError(
            f'{what} needs the package transformers: pip install ".[transformers]" in a checkout'
        ) from error
    return transformers


@contextmanager
def _quiet(transformers: Any, downloads: bool = False) -> Iterator[None]:
    """Suppress warnings about unused weights, and progress bars other than those of downloads."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not downloads:
        logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars and not downloads:
            logging.enable_progress_bar()


def _describe_failure(source: str, local: bool, error: Exception) -> str:
    message = str(error).strip()
    first = message.splitlines()[0] if message else type(error).__name__
    if "trust_remote_code" in message:
        return f"the encoder {source!r} needs code from its repository, which is never run; choose another one"
    if local:
        return (
            f"cannot load an encoder from the folder {source} ({first}); it needs config.json, model.safetensors and "
            "tokenizer.json"
        )
    return (
        f"the encoder {source!r} is not a folder, and cannot be loaded from the Hugging Face Hub as safetensors "
        f"({first}); check the name and the connection, or use a folder with a copy"
    )


def _check_files(transformers: Any, location: str, source: str, revision: str | None) -> None:
    """Check the files that decide what transformers loads; its own checks differ between versions.

    Raises:
        DataError: they name an attention kernel, weights that are not safetensors, or an adapter.
        OSError: there is no file of weights.
    """
    # This is the description that AutoConfig uses: config.json can refer to another file.
    config, _ = transformers.PretrainedConfig.get_config_dict(location, revision=revision)
    _check_config(config, source)
    if _find_file(transformers, location, "adapter_config.json", revision) is not None:
        raise DataError(
            f"the encoder {source!r} has an adapter (adapter_config.json), which can load weights from elsewhere; "
            "merge the adapter into model.safetensors and remove the file, or choose another encoder"
        )
    if _find_file(transformers, location, "model.safetensors", revision) is not None:
        return  # transformers prefers it to an index
    index = _find_file(transformers, location, "model.safetensors.index.json", revision)
    if index is not None:
        _check_index(Path(index), source)
    elif "transformers_weights" not in config:
        raise OSError("no file named model.safetensors or model.safetensors.index.json")


def _find_file(transformers: Any, location: str, name: str, revision: str | None) -> str | None:
    """The path of a file in a folder or of a repository, or None."""
    optional = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    path: str | None = transformers.utils.hub.cached_file(location, name, revision=revision, **optional)
    return path


def _check_index(path: Path, source: str) -> None:
    """Refuse an index of weights that names anything but safetensors files beside it."""
    for name in json.loads(path.read_text(encoding="utf-8"))["weight_map"].values():
        if not str(name).endswith(".safetensors") or "/" in name or "\\" in name:
            raise DataError(
                f"the weights index {path.name} of the encoder {source!r} names {name!r}; only safetensors files in "
                "the same folder are loaded. Convert the weights to safetensors, or choose another encoder"
            )


def _check_config(value: Any, source: str, key: str = "") -> None:
    """Refuse values anywhere in a description that load code from the Hub or weights that are not safetensors."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            # {"attn_implementation": {"text_config": "sdpa"}} sets the implementation of a part.
            _check_config(entry, source, key if "_implementation" in key else str(name))
    elif isinstance(value, list | tuple):
        for entry in value:
            _check_config(entry, source, key)
    elif "_implementation" in key and not (value is None or isinstance(value, bool) or value in ATTENTION):
        raise DataError(
            f"the encoder {source!r} has {key}={value!r} in its configuration, and kernels from the Hub are never run; "
            f"change it to one of {', '.join(ATTENTION)}, or choose another encoder"
        )
    elif key == "transformers_weights" and not (value is None or str(value).endswith(".safetensors")):
        raise DataError(
            f"the encoder {source!r} has {key}={value!r} in its configuration; only safetensors files are loaded. Name "
            "one such file, or choose another encoder"
        )


def _set_dropout(config: Any, dropout: float) -> None:
    """Set the dropout of states and attention, whatever the configuration calls it."""
    for name, value in config.to_dict().items():
        if "dropout" in name and isinstance(value, int | float) and not isinstance(value, bool):
            setattr(config, name, dropout)


def _commit(transformers: Any, source: str, revision: str | None) -> str | None:
    """The current commit of a branch, a tag or None, so that all files come from one commit."""
    path = transformers.utils.hub.cached_file(source, "config.json", revision=revision or "main")
    commit: str | None = transformers.utils.hub.extract_commit_hash(path, None)
    return commit or revision


def _encoder(model: Any) -> Any:
    """The encoder part of a model, in float32, without the pooling layer."""
    network = model.get_encoder() if model.config.is_encoder_decoder else model
    if getattr(network, "pooler", None) is not None:
        network.pooler = None
    return network.float()


def _capacity(network: Any, tokenizer: Any) -> int:
    """Return the maximum number of tokens: the number of positions, minus those that RoBERTa and its relatives skip."""
    positions = getattr(network.config, "max_position_embeddings", None) or UNBOUNDED
    tables = (module for name, module in network.named_modules() if name.endswith("position_embeddings"))
    unused = next((table.padding_idx + 1 for table in tables if getattr(table, "padding_idx", None) is not None), 0)
    return min(tokenizer.model_max_length, positions - unused)


@torch.no_grad()
def _check_network(network: Any, source: str) -> None:
    """Encode four tokens: each state must depend on later tokens, and on no token outside the attention mask."""
    network.eval()
    table = network.get_input_embeddings()
    vectors = table(torch.arange(4) % table.num_embeddings)[None]
    other = vectors.clone()
    other[0, 3] += 1.0
    everything, without = torch.ones((1, 4), dtype=torch.long), torch.tensor([[1, 1, 1, 0]])
    try:
        seen = [encode(network, x, everything) for x in (vectors, other)]
        unseen = [encode(network, x, without) for x in (vectors, other)]
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise DataError(f"{source!r} does not take vectors as input ({error}); choose another encoder") from error
    if torch.equal(seen[0][:, :3], seen[1][:, :3]):
        raise DataError(
            f"{source!r} is a decoder, which reads from left to right only; choose an encoder such as BERT or RoBERTa"
        )
    if not torch.equal(unseen[0][:, :3], unseen[1][:, :3]):
        raise DataError(f"{source!r} ignores the attention mask; choose another encoder")


def encode(network: Any, vectors: Tensor, attended: Tensor) -> Tensor:
    """(rows, length, size) states."""
    states: Tensor = network(inputs_embeds=vectors, attention_mask=attended).last_hidden_state
    return states
