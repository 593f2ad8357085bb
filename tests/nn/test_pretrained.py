"""Encoders from folders and from the Hub, and errors for unsupported ones."""

import json
import shutil
import sys

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from rationalizer.nn.encoders.pretrained import Pretrained, load_pretrained
from rationalizer.text import DataError
from tests.nn.tiny_transformers import SIZES, tokenizer, write_encoder


@pytest.fixture
def offline(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def copy_of(bert, folder):
    shutil.copytree(bert, folder, dirs_exist_ok=True)
    return folder


def test_load_from_folder(bert):
    found = load_pretrained(bert)
    assert (found.source, found.revision, found.capacity) == (bert, None, 64)
    assert found.config["hidden_size"] == 16
    assert found.network.pooler is None  # nothing reads it


def test_half_precision_weights_load_as_float32(bert, tmp_path):
    folder = copy_of(bert, tmp_path)
    weights = load_file(folder / "model.safetensors")
    save_file({name: w.half() for name, w in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    network = load_pretrained(str(folder)).network
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}


@pytest.mark.parametrize(("kind", "capacity"), [("roberta", 61), ("bert", 64)])
def test_unused_positions_reduce_the_capacity(kind, capacity, tmp_path):
    """RoBERTa's positions start after the index of the padding token."""
    folder = write_encoder(tmp_path, kind, max_position_embeddings=64, pad_token_id=2 if kind == "roberta" else 0)
    found = load_pretrained(folder)
    assert found.capacity == capacity
    vectors = found.network.get_input_embeddings()(torch.full((1, capacity), 7))
    found.network(inputs_embeds=vectors, attention_mask=torch.ones((1, capacity), dtype=torch.long))


@pytest.mark.parametrize(("kind", "settings"), [("gpt2", {"n_embd": 16, "n_layer": 2, "n_head": 2}), ("llama", SIZES)])
def test_decoders_raise(kind, settings, tmp_path):
    with pytest.raises(DataError, match="is a decoder"):
        load_pretrained(write_encoder(tmp_path, kind, **settings))


def test_tokenizer_without_offsets_raises(tmp_path):
    config = transformers.CanineConfig(**SIZES, max_position_embeddings=64)
    transformers.CanineModel(config).save_pretrained(tmp_path)
    transformers.CanineTokenizer().save_pretrained(tmp_path)
    with pytest.raises(DataError, match="has no fast tokenizer"):
        load_pretrained(str(tmp_path))


def test_pickled_weights_are_not_read(bert, tmp_path):
    folder = copy_of(bert, tmp_path)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(DataError, match=r"model\.safetensors"):
        load_pretrained(str(folder))


def test_remote_code_is_never_run(bert, tmp_path):
    folder = copy_of(bert, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    del config["model_type"]
    config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(DataError, match="never run"):
        load_pretrained(str(folder))
    assert not (tmp_path / "ran").exists()


def edit_json(path, **entries):
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


KERNEL = "evil/kernel"
KERNEL_SETTINGS = [
    {"attn_implementation": KERNEL},
    {"_attn_implementation": KERNEL},
    {"_attn_implementation_internal": KERNEL},
    {"attn_implementation": {"": "sdpa", "text_config": KERNEL}},
    {"text_config": {"attn_implementation": KERNEL}},
    {"experts_implementation": KERNEL},
]


@pytest.fixture
def hub_kernels(monkeypatch):
    """The kernels that transformers asks for."""
    import transformers.modeling_utils

    asked = []
    if hasattr(transformers.modeling_utils, "lazy_import_flash_attention"):
        monkeypatch.setattr(
            transformers.modeling_utils, "lazy_import_flash_attention", lambda name, **_: asked.append(name)
        )
    return asked


@pytest.mark.parametrize("settings", KERNEL_SETTINGS)
def test_hub_kernels_raise(bert, tmp_path, settings, hub_kernels):
    folder = copy_of(bert, tmp_path)
    described = load_pretrained(bert).to_json()
    edit_json(folder / "config.json", **settings)
    with pytest.raises(DataError, match=KERNEL):
        load_pretrained(str(folder))
    with pytest.raises(DataError, match=KERNEL):
        Pretrained.from_json({**described, "config": {**described["config"], **settings}})
    assert hub_kernels == []


def test_hub_kernel_in_versioned_configuration_raises(bert, tmp_path, hub_kernels):
    folder = copy_of(bert, tmp_path)
    shutil.copy(folder / "config.json", folder / "config.4.0.0.json")
    edit_json(folder / "config.json", configuration_files=["config.4.0.0.json"])
    edit_json(folder / "config.4.0.0.json", attn_implementation=KERNEL)
    with pytest.raises(DataError, match=KERNEL):
        load_pretrained(str(folder))
    assert hub_kernels == []


@pytest.mark.parametrize("attention", ["eager", "sdpa", None])
def test_known_attention_is_loaded(bert, tmp_path, attention):
    folder = copy_of(bert, tmp_path)
    edit_json(folder / "config.json", attn_implementation=attention)
    Pretrained.from_json(load_pretrained(str(folder)).to_json())


def write_shards(folder, name):
    """Write weights to a file with this name, and their index."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    if name.endswith(".safetensors"):
        save_file(weights, folder / name, {"format": "pt"})
    else:
        torch.save(weights, folder / name)
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards_are_loaded(bert, tmp_path):
    folder = copy_of(bert, tmp_path)
    write_shards(folder, "part.safetensors")
    one, other = (load_pretrained(str(source)).network.state_dict() for source in (bert, folder))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", ["evil.bin", "../evil.safetensors"])
def test_index_of_other_files_raises(bert, tmp_path, name, monkeypatch):
    folder = copy_of(bert, tmp_path / "encoder")
    write_shards(folder, name)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("torch.load was called"))
    with pytest.raises(DataError, match=name):
        load_pretrained(str(folder))


@pytest.mark.parametrize("name", ["adapter_model.bin", "evil.safetensors.index.json"])
def test_other_weights_named_in_configuration_raise(bert, tmp_path, name, monkeypatch):
    folder = copy_of(bert, tmp_path)
    torch.save(load_file(folder / "model.safetensors"), folder / "adapter_model.bin")
    edit_json(folder / "config.json", transformers_weights=name)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("torch.load was called"))
    with pytest.raises(DataError, match=f"transformers_weights='{name}'"):
        load_pretrained(str(folder))


def test_adapter_raises(bert, tmp_path):
    folder = copy_of(bert, tmp_path)
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "evil/weights"}))
    with pytest.raises(DataError, match="adapter_config"):
        load_pretrained(str(folder))


def test_missing_weights_raise(bert, tmp_path):
    folder = copy_of(bert, tmp_path)
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "layer.1" in name)
    del weights[name]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(DataError, match="lack 1 tensors of its encoder"):
        load_pretrained(str(folder))


@pytest.mark.parametrize("kind", ["bert", "distilbert", "modernbert", "t5"])
def test_dropout_is_set(kind, tmp_path):
    folder = write_encoder(tmp_path, kind)
    vectors = load_pretrained(folder).network.get_input_embeddings()(torch.arange(6) + 5)[None]
    for dropout, varies in ((0.0, False), (0.3, True)):
        described = load_pretrained(folder, None, dropout)
        for network in (described.network, Pretrained.from_json(described.to_json(), dropout).network):
            network.train()
            one, other = (network(inputs_embeds=vectors).last_hidden_state for _ in range(2))
            assert torch.equal(one, other) is not varies


def test_revision_of_a_folder_raises(bert):
    with pytest.raises(DataError, match="revision='main'"):
        load_pretrained(bert, "main")


def test_missing_folder_raises():
    for name in ("./encoders/mine", "/encoders/mine", "a/b/c"):
        with pytest.raises(DataError, match="does not exist"):
            load_pretrained(name)


def test_hub_name_without_network_raises(offline):
    with pytest.raises(DataError, match=r"Hugging Face Hub"):
        load_pretrained("nobody/nothing")


def test_missing_transformers_extra_is_named(bert, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[transformers\]"'):
        load_pretrained(bert)
    described = {"config": {}, "source": "x"}
    with pytest.raises(ImportError, match=r'pip install "\.\[transformers\]"'):
        Pretrained.from_json(described)


def test_hub_name_is_pinned_to_its_commit(bert, offline, tmp_path, monkeypatch):
    """Load from a Hub cache folder in the layout of a download."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("transformers.utils.hub.TRANSFORMERS_CACHE", str(tmp_path / "hub"), raising=False)  # version 4
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--somebody--tiny"
    copy_of(bert, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    found = load_pretrained("somebody/tiny")
    assert (found.source, found.revision) == ("somebody/tiny", commit)
    write_shards(repository / "snapshots" / commit, "evil.bin")
    with pytest.raises(DataError, match=r"evil\.bin"):
        load_pretrained("somebody/tiny")


def test_encoder_without_length_limit(tmp_path):
    folder = write_encoder(tmp_path, "t5", max_position_embeddings=None)
    own = tokenizer(length=int(1e30))
    own.save_pretrained(folder)
    assert load_pretrained(folder).capacity == 4096
