"""The ops of onnxruntime-extensions: its own library runs them, ONNX Runtime alone knows them.

Inverse is the one that frameworks have too. Tokenizers, and ops of text, images and sound, are refused elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onward.advice.extras import require
from onward.plugins import CustomOp, TensorKind

if TYPE_CHECKING:
    import jax.numpy as jnp
    import tensorflow as tf
    import torch

DOMAIN, IMAGES = "ai.onnx.contrib", "com.microsoft.extensions"
"""The second has the ops on images."""


def library() -> str:
    """The library with the kernels."""
    require("onnxruntime_extensions", what=f"the domain {DOMAIN}")
    from onnxruntime_extensions import get_library_path

    return str(get_library_path())


LIKE = "like"
"""The shape of the first input."""
LIST, MATRIX = (None,), (None, None)
PAIRS, OFFSETS = (None, 2), (None, None, 2)

_BPE = {"vocab": str, "merges": str, "added_token": str | None, "model_name": str | None, "padding_length": -1}
_BPE_IDS = "input_ids:int64 attention_mask:int64? offset_mapping:int64?"
_WORDS = {
    "do_lower_case": 1,
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
    "tokenize_chinese_chars": 1,
    "strip_accents": 0,
    "suffix_indicator": "##",
}
_BERT = {
    "vocab_file": str,
    **_WORDS,
    "do_basic_tokenize": 1,
    "max_length": -1,
    "truncation_strategy_name": "longest_first",
}
_PATTERN = "text:string pattern:string rewrite:string"
_SPLIT = ("text:string delimiter:string keep:string", "tokens:string begin:int64 end:int64 rows:int64")
_SENTENCE = "nbest_size:int64 alpha:float add_bos:bool add_eos:bool reverse:bool fairseq:bool?"
_TEXT: dict[str, tuple[str, str, dict[str, Any], list[Any]]] = {
    "BasicTokenizer": (
        "text:string",
        "tokens:string",
        {
            "do_lower_case": 1,
            "tokenize_chinese_chars": 1,
            "strip_accents": 0,
            "tokenize_punctuation": 0,
            "remove_control_chars": 1,
        },
        [LIST],
    ),
    "BertTokenizer": (
        "text:string",
        "input_ids:int64 token_type_ids:int64 attention_mask:int64 offset_mapping:int64?",
        _BERT,
        [LIST, LIST, LIST, PAIRS],
    ),
    "BertTokenizerDecoder": (
        "ids:int64 position:int64",
        "text:string",
        {
            "vocab_file": str,
            "unk_token": "[UNK]",
            "sep_token": "[SEP]",
            "pad_token": "[PAD]",
            "cls_token": "[CLS]",
            "mask_token": "[MASK]",
            "suffix_indicator": "##",
            "use_indices": 0,
            "skip_special_tokens": 0,
            "clean_up_tokenization_spaces": 1,
        },
        [LIST],
    ),
    "BlingFireSentenceBreaker": ("text:string", "sentences:string", {"model": str, "max_sentence": -1}, [LIST]),
    "BpeDecoder": (
        "ids:int64",
        "text:string",
        {
            "id_vocab": str,
            "byte_decoder": str,
            "added_tokens": str | None,
            "all_special_ids": str | None,
            "en_normalization": 0,
            "skip_special_tokens": 0,
            "whitespace_token": 0,
            "bos_token": "<|endoftext|>",
            "eos_token": "<|endoftext|>",
            "unk_token": "<|endoftext|>",
        },
        [LIST],
    ),
    "CLIPTokenizer": ("text:string", _BPE_IDS, _BPE, [MATRIX, MATRIX, OFFSETS]),
    "GPT2Tokenizer": ("text:string", "input_ids:int64 attention_mask:int64?", _BPE, [MATRIX, MATRIX]),
    "HfBertTokenizer": (
        "text:string",
        "input_ids:int64 attention_mask:int64 token_type_ids:int64",
        _BERT,
        [MATRIX] * 3,
    ),
    "MaskedFill": ("value:string mask:bool", "output:string", {}, [LIST]),
    "RaggedTensorToSparse": ("begins:int64", "indices:int64 shape:int64", {}, [PAIRS, (2,)]),
    "RobertaTokenizer": ("text:string", _BPE_IDS, _BPE, [MATRIX, MATRIX, OFFSETS]),
    "SegmentExtraction": ("x:int64", "position:int64 value:int64", {}, [PAIRS, LIST]),
    "SentencepieceDecoder": ("ids:int64 fairseq:bool?", "text:string", {"model": str}, [LIST]),
    "SentencepieceTokenizer": (
        f"text:string {_SENTENCE}",
        "tokens:int32 instance_indices:int64 token_indices:int32?",
        {"model": str},
        [LIST] * 3,
    ),
    "SpmTokenizer": ("text:string", _BPE_IDS, _BPE, [MATRIX, MATRIX, OFFSETS]),
    "StringConcat": ("a:string b:string", "output:string", {}, [LIKE]),
    "StringECMARegexReplace": (_PATTERN, "output:string", {"global_replace": 1, "ignore_case": 0}, [LIKE]),
    "StringECMARegexSplitWithOffsets": (*_SPLIT, {"ignore_case": 0}, [LIST] * 4),
    "StringEqual": ("a:string b:string", "output:bool", {}, []),
    "StringJoin": ("text:string separator:string axis:int64", "output:string", {}, []),
    "StringLength": ("text:string", "output:int64", {}, [LIKE]),
    "StringLower": ("text:string", "output:string", {}, [LIKE]),
    "StringMapping": ("text:string", "output:string", {"map": str}, [LIKE]),
    "StringRegexReplace": (_PATTERN, "output:string", {"global_replace": 1}, [LIKE]),
    "StringRegexSplitWithOffsets": (*_SPLIT, {}, [LIST] * 4),
    "StringSplit": (
        "text:string separator:string skip_empty:bool",
        "indices:int64 values:string shape:int64",
        {},
        [PAIRS, LIST, (2,)],
    ),
    "StringStrip": ("text:string", "output:string", {}, [LIKE]),
    "StringToHashBucket": ("text:string buckets:int64", "output:int64", {}, [LIKE]),
    "StringToHashBucketFast": ("text:string buckets:int64", "output:int64", {}, [LIKE]),
    "StringToVector": ("text:string", "ids:int64", {"map": str, "unk": str}, []),
    "StringUpper": ("text:string", "output:string", {}, [LIKE]),
    "TrieDetokenizer": ("ids:int64", "text:string", {"vocab": str}, [LIST]),
    "TrieTokenizer": ("text:string", "ids:int64", {"vocab": str}, [MATRIX]),
    "VectorToString": ("ids:int64", "text:string", {"map": str, "unk": str}, []),
    "WordpieceTokenizer": (
        "text:string rows:int64",
        "words:string indices:int64 rows:int64 offsets:int64",
        {"vocab": str, "suffix_indicator": "##", "unknown_token": "[UNK]", "max_input_chars_per_word": 200},
        [LIST] * 4,
    ),
}
"""What each op of text takes and gives, its attributes, and the shapes of what it gives, where they are known."""


_FILE = "it reads or writes a file"
_SEGMENTS = "it gives places in a signal"
_SIGNALS: dict[str, tuple[str, str, dict[str, Any], list[Any], str]] = {
    f"{DOMAIN}::AudioDecoder": (
        "stream:uint8 format:string?",
        "samples:float",
        {"downsampling_rate": int | None, "stereo_to_mono": 0},
        [(1, None)],
        _FILE,
    ),
    f"{DOMAIN}::MergeSignalSegments": ("segments:int64 gap_ms:int64", "merged:int64", {}, [PAIRS], _SEGMENTS),
    f"{DOMAIN}::NegPos": ("x:float", "negative:float positive:float", {}, [LIKE, LIKE], ""),
    f"{DOMAIN}::SplitSignalSegments": (
        "signal:float rate:int64 frame_ms:int64 hop_ms:int64 threshold_db:float",
        "segments:int64",
        {},
        [PAIRS],
        _SEGMENTS,
    ),
    f"{DOMAIN}::StftNorm": (
        "signal:float n_fft:int64 hop:int64 window:float frame:int64",
        "power:float",
        {},
        [(1, None, None)],
        "",
    ),
    f"{IMAGES}::DecodeImage": ("bytes:uint8", "image:uint8", {"color_space": "bgr"}, [(None, None, 3)], _FILE),
    f"{IMAGES}::DrawBoundingBoxes": (
        "image:uint8 boxes:float",
        "drawn:uint8",
        {"mode": "XYXY", "thickness": 4, "num_classes": 10, "colour_by_classes": 1},
        [LIKE],
        "it gives pixels of 8 bits",
    ),
    f"{IMAGES}::EncodeImage": (
        "image:uint8",
        "bytes:uint8",
        {"format": str, "color_space": "bgr"},
        [LIST],
        _FILE,
    ),
}
"""The same for sound and images, and why there is no gradient, if there is none."""


def _inferred(op: CustomOp, shapes: list[Any]) -> Any:
    def infer(x: Any, *others: Any, **attributes: Any) -> Any:
        kinds = zip(op.outputs, shapes, strict=True)
        return [TensorKind(formal.type, x.shape if shape == LIKE else shape) for formal, shape in kinds]

    return infer


_ALL = {f"{DOMAIN}::{name}": (*said, "it is of text") for name, said in _TEXT.items()} | _SIGNALS
for _name, (_inputs, _outputs, _attributes, _shapes, _flat) in _ALL.items():
    _op = CustomOp(_name, inputs=_inputs, outputs=_outputs, attributes=_attributes)
    _op.library(library)
    if _flat:
        _op.no_gradient(_flat)
    if _shapes:
        _op.infer(_inferred(_op, _shapes))

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
