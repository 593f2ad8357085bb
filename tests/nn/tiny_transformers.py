"""Tiny encoders with random weights, in folders with the Hub's layout."""

from collections import Counter
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from rationalizer.nn import HighlightModel, PairModel, TransformerEncoder
from rationalizer.nn.encoders.transformer import TransformerOptions
from tests.nn.tiny_models import WORDS

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "initializer_range": 0.3,  # large enough that words affect each other without training
}
# By model type: what a tiny one of it is made with.
KINDS = {
    "bert": SIZES,
    "roberta": SIZES,
    "electra": {**SIZES, "embedding_size": 8},
    "albert": {**SIZES, "embedding_size": 8},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    "mpnet": SIZES,
    "deberta-v2": {
        **SIZES,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "max_relative_positions": 64,
    },
    "modernbert": SIZES,
    "t5": {"d_model": 16, "num_layers": 2, "num_heads": 2, "d_ff": 32, "d_kv": 8},
}


def tokenizer(length=64):
    """Pieces of one or two characters: `w12` is w1, ##2; `w` is a piece as well."""
    pieces = ["w", ",", ".", "!", *(f"w{digit}" for digit in range(10)), *(f"##{digit}" for digit in range(10))]
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = list(dict.fromkeys([*SPECIAL, *pieces, *letters, *(f"##{letter}" for letter in letters)]))
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    around = [(name, ids[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=length, **names)


def write_encoder(folder: Path, kind="bert", *, seed=0, **settings) -> str:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    own = tokenizer()
    torch.manual_seed(seed)
    given = {
        "vocab_size": len(own),
        "pad_token_id": 0,
        "max_position_embeddings": 66,
        **KINDS.get(kind, {}),
        **settings,
    }
    config = transformers.AutoConfig.for_model(kind, **given)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    own.save_pretrained(folder)
    return str(folder)


def make_encoder(folder, *, pairs=False, generates=True, rule="spaces", punctuation="free", **options):
    how = {"rule": rule, "punctuation": punctuation, "generates": generates, "predicts": not pairs, "dropout": 0.1}
    return TransformerEncoder.prepare(folder, Counter(WORDS), TransformerOptions(**options), **how).eval()


def highlight_model(folder, method="spectra", *, generates=True, punctuation="free", settings=None, **options):
    made = make_encoder(folder, generates=generates and method != "full-text", punctuation=punctuation, **options)
    torch.manual_seed(1)
    return HighlightModel(made, method=method, pooling="mean", **(settings or {}))


def pair_model(folder, method="at-most-one", *, settings=None, **options):
    made = make_encoder(folder, pairs=True, **options)
    torch.manual_seed(1)
    return PairModel(made, method=method, **(settings or {}))
