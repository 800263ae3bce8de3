"""The ops of onnxruntime-extensions: its own library runs them, ONNX Runtime alone knows them.

Inverse is the one that frameworks have too. Tokenizers and ops of text are refused elsewhere, by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onward.advice.extras import require
from onward.plugins import CustomOp

if TYPE_CHECKING:
    import jax.numpy as jnp
    import tensorflow as tf
    import torch

DOMAIN = "ai.onnx.contrib"


def library() -> str:
    """The library with the kernels."""
    require("onnxruntime_extensions", what=f"the domain {DOMAIN}")
    from onnxruntime_extensions import get_library_path

    return str(get_library_path())


_BPE = {"vocab": str, "merges": str, "padding_length": -1}
_BERT = {
    "vocab_file": str,
    "do_lower_case": 1,
    "do_basic_tokenize": 1,
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
    "tokenize_chinese_chars": 1,
    "strip_accents": 0,
    "suffix_indicator": "##",
    "max_len": -1,
    "truncation_strategy_name": "longest_first",
}
_TEXT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "BertTokenizer": (
        "text:string",
        "input_ids:int64 token_type_ids:int64 attention_mask:int64 offset_mapping:int64?",
        _BERT,
    ),
    "BpeDecoder": ("ids:int64", "text:string", {"id_vocab": str, "byte_decoder": str, "added_tokens": str | None}),
    "CLIPTokenizer": ("text:string", "input_ids:int64 attention_mask:int64? offset_mapping:int64?", _BPE),
    "GPT2Tokenizer": ("text:string", "input_ids:int64 attention_mask:int64?", _BPE),
    "RobertaTokenizer": ("text:string", "input_ids:int64 attention_mask:int64? offset_mapping:int64?", _BPE),
    "MaskedFill": ("value:string mask:bool", "output:string", {}),
    "SentencepieceDecoder": ("ids:int64 fairseq:bool?", "text:string", {"model": str}),
    "SentencepieceTokenizer": (
        "text:string nbest_size:int64 alpha:float add_bos:bool add_eos:bool reverse:bool fairseq:bool?",
        "tokens:int32 instance_indices:int64 token_indices:int32?",
        {"model": str},
    ),
    "StringConcat": ("a:string b:string", "output:string", {}),
    "StringECMARegexReplace": (
        "text:string pattern:string rewrite:string",
        "output:string",
        {"global_replace": 1, "ignore_case": 0},
    ),
    "StringEqual": ("a:string b:string", "output:bool", {}),
    "StringHash": ("text:string buckets:int64", "output:int64", {}),
    "StringHashFast": ("text:string buckets:int64", "output:int64", {}),
    "StringJoin": ("text:string separator:string axis:int64", "output:string", {}),
    "StringLength": ("text:string", "output:int64", {}),
    "StringLower": ("text:string", "output:string", {}),
    "StringMapping": ("text:string", "output:string", {"map": str}),
    "StringRegexReplace": ("text:string pattern:string rewrite:string", "output:string", {"global_replace": 1}),
    "StringRegexSplitWithOffsets": (
        "text:string delimiter:string keep:string",
        "tokens:string begin:int64 end:int64 rows:int64",
        {},
    ),
    "StringSplit": ("text:string separator:string skip_empty:bool", "indices:int64 values:string shape:int64", {}),
    "StringToVector": ("text:string", "ids:int64", {"map": str, "unmapping_value": str}),
    "StringUpper": ("text:string", "output:string", {}),
    "VectorToString": ("ids:int64", "text:string", {"map": str, "unk": str}),
    "WordpieceTokenizer": (
        "text:string rows:int64",
        "words:string indices:int64 rows:int64 offsets:int64",
        {"vocab": str, "suffix_indicator": "##", "unknown_token": "[UNK]", "max_input_chars_per_word": 200},
    ),
}
"""What each op of text takes and gives, and its attributes."""

for _name, (_inputs, _outputs, _attributes) in _TEXT.items():
    _op = CustomOp(f"{DOMAIN}::{_name}", inputs=_inputs, outputs=_outputs, attributes=_attributes)
    _op.library(library)
    _op.no_gradient("it is of text")

inverse = CustomOp(f"{DOMAIN}::Inverse", inputs="x:float", outputs="y:float")
inverse.library(library)


@inverse.infer
def _(x: Any) -> Any:
    return x


@inverse.sample
def _(rng: np.random.Generator) -> Any:
    return (rng.normal(size=(4, 4)) + 4 * np.eye(4)).astype(np.float32)


@inverse.numpy
def _(x: Any) -> Any:
    return np.linalg.inv(x)


@inverse.torch
def _(x: Any) -> Any:
    return torch.linalg.inv(x)


@inverse.tensorflow
def _(x: Any) -> Any:
    return tf.linalg.inv(x)


@inverse.jax
def _(x: Any) -> Any:
    return jnp.linalg.inv(x)


@inverse.vjp
def _(c: Any, g: Any, x: Any) -> Any:
    turned = c.op.Transpose(c.y, perm=[1, 0])
    return -(turned @ g @ turned)
