"""Decision records: what a model read and predicted, in enough detail to repeat it bit for bit."""

from rationalizer.records.decision_record import (
    DecisionRecord,
    RecordedLink,
    RecordedText,
    RecordedWord,
    Signature,
    text_hash,
)
from rationalizer.records.model_hash import model_hash
from rationalizer.records.record_files import read_records
from rationalizer.records.recorder import Recorder
from rationalizer.records.replay import TOLERANCE, Verification, Verifier, verify
from rationalizer.records.signing import find_signature_problem, load_private_key, load_public_key, sign

__all__ = [
    "TOLERANCE",
    "DecisionRecord",
    "RecordedLink",
    "RecordedText",
    "RecordedWord",
    "Recorder",
    "Signature",
    "Verification",
    "Verifier",
    "find_signature_problem",
    "load_private_key",
    "load_public_key",
    "model_hash",
    "read_records",
    "sign",
    "text_hash",
    "verify",
]
