"""Signatures: with the user's key, over every field."""

import sys
from dataclasses import fields, replace

import pytest

from rationalizer import DecisionRecord, verify
from rationalizer.records import find_signature_problem, load_private_key, load_public_key, sign
from rationalizer.text.errors import InputError
from tests.records.key_files import write_private, write_public

pytest.importorskip("cryptography", reason='the extra "records" is not installed')
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key


@pytest.fixture
def key():
    return Ed25519PrivateKey.generate()


def test_signed_records_are_verified(model, texts, record, key, tmp_path):
    private, public = write_private(key, tmp_path / "key.pem"), write_public(key, tmp_path / "key.pub")
    signed = DecisionRecord.from_json(sign(record, private).to_json())
    assert find_signature_problem(signed, public) is None
    assert verify(signed, model, texts[0], public_key=public).verdict == "identical"
    assert verify(signed, model, texts[0]).verdict == "identical"
    assert sign(signed, key) == signed  # an earlier signature is not signed


def test_unsigned_records_fail(model, texts, record, key):
    result = verify(record, model, texts[0], public_key=key.public_key())
    assert not result
    assert "not signed" in result.problems[0]


def test_another_key_fails(record, key):
    signed = sign(record, Ed25519PrivateKey.generate())
    assert "another key" in find_signature_problem(signed, key.public_key())
    # A forger may name our key.
    ours = replace(signed.signature, public_key=sign(record, key).signature.public_key)
    assert "does not fit" in find_signature_problem(replace(signed, signature=ours), key.public_key())


def test_every_field_is_signed(record, key):
    signed = sign(record, key)
    text, word = record.texts[0], record.rationale[0]
    changed = {
        "format": 2,
        "time": "2020-01-01T00:00:00+00:00",
        "model": "0" * 64,
        "texts": (replace(text, sha256="0" * 64),),
        "word_splitting": "spaces",
        "budget": "99%",
        "budget_words": 99,
        "constraints": ("spans=1",),
        "rationale": (replace(word, word="other"), *record.rationale[1:]),
        "alignment": (),
        "faithful": False,
        "label": "other",
        "probabilities": {name: value / 2 for name, value in record.probabilities.items()},
        "versions": {**record.versions, "torch": "1.0"},
        "machine": {**record.machine, "processor": "other"},
    }
    assert changed.keys() == {item.name for item in fields(record)} - {"signature"}
    assert find_signature_problem(signed, key.public_key()) is None
    for name, value in changed.items():
        assert find_signature_problem(replace(signed, **{name: value}), key.public_key()), name


@pytest.mark.parametrize("change", [{"value": "AAAA"}, {"value": "not base64!"}, {"algorithm": "none"}])
def test_broken_signatures_fail(record, key, change):
    signed = sign(record, key)
    broken = replace(signed, signature=replace(signed.signature, **change))
    assert find_signature_problem(broken, key.public_key())


def test_passphrases(record, key, tmp_path):
    path = write_private(key, tmp_path / "key.pem", "secret")
    assert sign(record, path, passphrase="secret").signature
    for wrong in (None, "other"):
        with pytest.raises(InputError) as caught:
            load_private_key(path, passphrase=wrong)
        assert str(path) in caught.value.problem


def test_other_keys_are_refused(key, tmp_path):
    other = generate_private_key(65537, 2048)
    for load, write in ((load_private_key, write_private), (load_public_key, write_public)):
        path = write(other, tmp_path / "rsa.pem")
        with pytest.raises(InputError) as caught:
            load(path)
        assert "RSA" in caught.value.problem
        path.write_text("no key")
        with pytest.raises(InputError) as caught:
            load(path)
        assert "openssl" in caught.value.remedy
    with pytest.raises(InputError):
        load_public_key(key)  # a private key


def test_missing_package_names_the_extra(record, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(ImportError, match="records"):
        sign(record, "key.pem")
