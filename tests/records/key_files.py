"""Key pairs in PEM files."""


def write_private(key, path, passphrase=None):
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    encryption = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase.encode())
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return path


def write_public(key, path):
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path
