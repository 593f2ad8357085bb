"""Sign records with a key of the user, and check signatures (Ed25519, extra `records`).

This package never makes or contains a key.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from pathlib import Path
from typing import Any

from rationalizer.records.decision_record import DecisionRecord, Signature
from rationalizer.text.errors import InputError

ALGORITHM = "Ed25519"
NEW_KEY = "make one with: openssl genpkey -algorithm ed25519 -out key.pem"
NEW_PUBLIC_KEY = "extract it with: openssl pkey -in key.pem -pubout -out key.pub"


def sign(record: DecisionRecord, key: Any, *, passphrase: str | None = None) -> DecisionRecord:
    """Return the record with a signature over all other fields, in place of an earlier one.

    Args:
        key: the path of a PEM file with an Ed25519 private key, or such a key of the package `cryptography`.
        passphrase: of an encrypted PEM file.
    """
    private = load_private_key(key, passphrase=passphrase)
    signature = Signature(ALGORITHM, _encode(_raw(private.public_key())), _encode(private.sign(record.signed_bytes())))
    return replace(record, signature=signature)


def find_signature_problem(record: DecisionRecord, key: Any) -> str | None:
    """Describe why the record does not have a valid signature by this key; None if it has.

    Args:
        key: the path of a PEM file with an Ed25519 public key, or such a key of the package `cryptography`.
    """
    public = load_public_key(key)
    from cryptography.exceptions import InvalidSignature

    signature = record.signature
    if signature is None:
        return "the record is not signed"
    if signature.algorithm != ALGORITHM:
        return f"the record is signed with {signature.algorithm[:40]!r}, not {ALGORITHM}"
    if signature.public_key != _encode(_raw(public)):
        return f"the record is signed with another key, {signature.public_key[:60]}"
    try:
        public.verify(base64.b64decode(signature.value, validate=True), record.signed_bytes())
    except (InvalidSignature, binascii.Error):
        return "the signature does not fit the record, which was changed after it was signed"
    return None


def load_private_key(key: Any, *, passphrase: str | None = None) -> Any:
    """Read an Ed25519 private key from a PEM file; return the key if it is one already."""
    serialization, ed25519 = _cryptography()
    if not isinstance(key, str | Path):
        return _require(key, ed25519.Ed25519PrivateKey, "signing key", NEW_KEY)
    secret = None if passphrase is None else passphrase.encode()
    try:
        loaded = serialization.load_pem_private_key(Path(key).read_bytes(), password=secret)
    except TypeError as error:  # encrypted without a passphrase, or the other way round
        raise InputError(f"{key}: {str(error)[:200]}", "set the passphrase of the key, or leave it out") from None
    except ValueError:
        reason = "is not a private key in PEM format" if passphrase is None else "cannot be read with this passphrase"
        raise InputError(f"{key} {reason}", NEW_KEY) from None
    return _require(loaded, ed25519.Ed25519PrivateKey, str(key), NEW_KEY)


def load_public_key(key: Any) -> Any:
    """Read an Ed25519 public key from a PEM file; return the key if it is one already."""
    serialization, ed25519 = _cryptography()
    if not isinstance(key, str | Path):
        return _require(key, ed25519.Ed25519PublicKey, "public key", NEW_PUBLIC_KEY)
    try:
        loaded = serialization.load_pem_public_key(Path(key).read_bytes())
    except ValueError:
        raise InputError(f"{key} is not a public key in PEM format", NEW_PUBLIC_KEY) from None
    return _require(loaded, ed25519.Ed25519PublicKey, str(key), NEW_PUBLIC_KEY)


def _require(key: Any, kind: type, name: str, remedy: str) -> Any:
    if not isinstance(key, kind):
        raise InputError(f"{name} is a {type(key).__name__}, not an {kind.__name__}", remedy)
    return key


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ImportError('signatures need the package cryptography: pip install ".[records]" in a checkout') from error
    return serialization, ed25519


def _raw(public: Any) -> bytes:
    return bytes(public.public_bytes_raw())


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
