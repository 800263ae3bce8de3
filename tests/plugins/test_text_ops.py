"""Tokenizers and ops of text of onnxruntime-extensions: what is inferred of each, and what it gives."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

pytest.importorskip("onnxruntime_extensions")

import onward
from onward import runners
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer
from onward.runners.libraries import BESIDE_TENSORFLOW

DOMAIN = "ai.onnx.contrib"
DTYPES = {"O": 8, "i": 7, "f": 1, "b": 9}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "hello", "wor", "##ld", ","]
VOCABULARY = "\n".join(WORDS)
IDS = json.dumps({word: i for i, word in enumerate(WORDS)})
PAIRS = json.dumps({"h": 0, "e": 1, "l": 2, "o": 3, "he": 4, "ll": 5, "<|endoftext|>": 6, "<s>": 7, "</s>": 8})
ENDED = json.dumps({"h": 0, "e": 1, "l": 2, "o</w>": 3, "he": 4, "ll": 5, "<|endoftext|>": 6, "<|startoftext|>": 7})
MERGES = "#version: 0.2\nh e\nl l"


def texts(*words: Any) -> Any:
    return np.array(words, object)


def pieces() -> bytes:
    """A model of SentencePiece, field by field: pieces with scores and kinds, and that it is a unigram model."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    words = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), ("▁hello", -1, 1), ("▁wor", -2, 1), ("ld", -2, 1)]
    said = [
        field(1, word.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", score) + bytes([3 << 3, kind])
        for word, score, kind in [*words, *((letter, -9, 1) for letter in "▁helowrd")]
    ]
    return b"".join(field(1, one) for one in said) + field(2, bytes([3 << 3, 1])) + field(3, b"")


SENTENCE = [np.array([0]), np.float32([0]), *(np.array([flag]) for flag in (True, True, False))]
CASES: list[tuple[str, list[Any], dict[str, Any], list[Any]]] = [
    (
        "BertTokenizer",
        [texts("Hello, unaffable world zzz")],
        {"vocab_file": VOCABULARY},
        [[2, 8, 11, 5, 6, 7, 9, 10, 1, 3], [0] * 10, [1] * 10],
    ),
    (
        "BertTokenizer",
        [texts("hello world un un")],
        {"vocab_file": VOCABULARY, "max_length": 5},
        [[2, 8, 9, 10, 3], [0] * 5, [1] * 5],
    ),
    (
        "HfBertTokenizer",
        [texts("hello", "un")],
        {"vocab_file": VOCABULARY},
        [[[2, 8, 3, 5, 3]], [[1] * 5], [[0, 0, 0, 1, 1]]],
    ),
    (
        "WordpieceTokenizer",
        [texts("hello", "unaffable", "zz"), np.array([0, 3])],
        {"vocab": IDS},
        [["hello", "un", "##aff", "##able", "[UNK]"], [0, 5]],
    ),
    (
        "BertTokenizerDecoder",
        [np.array([2, 8, 9, 10, 3]), np.array([[0, 5]])],
        {"vocab_file": VOCABULARY},
        [["[CLS] hello world [SEP]"]],
    ),
    ("SentencepieceTokenizer", [texts("hello world"), *SENTENCE], {"model": pieces()}, [[1, 3, 4, 5, 2], [0, 5]]),
    ("SentencepieceDecoder", [np.array([3, 4, 5])], {"model": pieces()}, [["hello world"]]),
    ("GPT2Tokenizer", [texts("hello", "he")], {"vocab": PAIRS, "merges": MERGES}, [[[4, 5, 3], [4, 0, 0]]]),
    ("RobertaTokenizer", [texts("hello")], {"vocab": PAIRS, "merges": MERGES}, [[[7, 4, 5, 3, 8]], [[1] * 5]]),
    ("CLIPTokenizer", [texts("hello")], {"vocab": ENDED, "merges": MERGES}, [[[7, 4, 5, 3, 6]], [[1] * 5]]),
    (
        "BpeDecoder",
        [np.array([4, 5, 3])],
        {"id_vocab": "h\ne\nl\no\nhe\nll", "byte_decoder": "\n".join(f"{ord(c)}\t{ord(c)}" for c in "helo")},
        [["hello"]],
    ),
    ("TrieTokenizer", [texts("ab")], {"vocab": "1 'a' 1\n2 'b' 1\n3 'ab' 2"}, [[[3]]]),
    ("BasicTokenizer", [texts("Hello, World")], {}, [["hello,", "world"]]),
    ("StringConcat", [texts("a", "b"), texts("c", "d")], {}, [["ac", "bd"]]),
    ("StringECMARegexReplace", [texts("a1b22"), texts("[0-9]+"), texts("#")], {}, [["a#b#"]]),
    ("StringECMARegexSplitWithOffsets", [texts("a b"), texts(r"(\s)"), texts("")], {}, [["a", "b"], [0, 2], [1, 3]]),
    ("StringEqual", [texts("a", "b"), texts("a", "d")], {}, [[True, False]]),
    ("StringJoin", [texts(["a", "b"], ["c", "d"]), texts("-"), np.array([1])], {}, [["a-b", "c-d"]]),
    ("StringLength", [texts("aé", "abc")], {}, [[2, 3]]),
    ("StringLower", [texts("AB")], {}, [["ab"]]),
    ("StringMapping", [texts("a", "b")], {"map": "a\tx"}, [["x", "b"]]),
    ("StringRegexReplace", [texts("a1b22"), texts("[0-9]+"), texts("#")], {}, [["a#b#"]]),
    ("StringRegexReplace", [texts("a1b22"), texts("[0-9]+"), texts("#")], {"global_replace": 0}, [["a#b22"]]),
    ("StringRegexSplitWithOffsets", [texts("a b"), texts(r"(\s)"), texts("")], {}, [["a", "b"], [0, 2], [1, 3]]),
    (
        "StringSplit",
        [texts("a b", "c  d"), texts(" "), np.array([True])],
        {},
        [[[0, 0], [0, 1], [1, 0], [1, 1]], ["a", "b", "c", "d"], [2, 2]],
    ),
    ("StringStrip", [texts(" a ", "b\n")], {}, [["a", "b"]]),
    ("StringToHashBucketFast", [texts("a", "b"), np.array([10])], {}, [[9, 7]]),
    ("StringToVector", [texts("a", "q")], {"map": "a\t1 2\nb\t3 4", "unk": "0 0"}, [[[1, 2], [0, 0]]]),
    ("StringUpper", [texts("ab")], {}, [["AB"]]),
    ("VectorToString", [np.array([[1], [2]])], {"map": "a\t1\nb\t2", "unk": "?"}, [["a", "b"]]),
    ("MaskedFill", [texts("a", "b"), np.array([True, False])], {}, [["a"]]),
    ("RaggedTensorToSparse", [np.array([0, 2, 3])], {}, [[[0, 0], [0, 1], [1, 0]], [2, 2]]),
    ("SegmentExtraction", [np.array([[1, 1, 0, 2]])], {}, [[[0, 2], [3, 4]], [1, 2]]),
]
OUTPUTS = {"WordpieceTokenizer": 4, "HfBertTokenizer": 3, "BertTokenizer": 3} | dict.fromkeys(
    ("StringRegexSplitWithOffsets", "StringECMARegexSplitWithOffsets"), 4
)
RANKS_UNKNOWN = {"StringEqual", "StringJoin", "StringToVector", "VectorToString"}


def model(cases: Any) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """All ops side by side, and what they are fed."""
    nodes, inputs, outputs, feeds = [], [], [], {}
    for i, (op, arrays, attributes, expected) in enumerate(cases):
        names = [f"{i}_{k}" for k in range(len(arrays))]
        made = [f"{i}.{k}" for k in range(OUTPUTS.get(op, len(expected)))]
        nodes.append(helper.make_node(op, names, made, domain=DOMAIN, name=f"{op}_{i}", **attributes))
        for name, array in zip(names, arrays, strict=True):
            sizes = [f"{name}_{axis}" for axis in range(array.ndim)]
            inputs.append(helper.make_tensor_value_info(name, DTYPES[array.dtype.kind], sizes))
            feeds[name] = array
        outputs += [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph(nodes, "texts", inputs, outputs)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def test_every_op_of_text_in_a_process_of_its_own() -> None:
    """Where TensorFlow is not: beside it some of them do not work."""
    proto, feeds = model(CASES)
    found = onward.load(proto)
    infer(found.ir)
    apart = runners.isolated("onnxruntime", found)
    try:
        results = apart(feeds)
    finally:
        apart.close()
    values = {value.name: value for value in found.ir.graph.outputs}
    for i, (op, _, _, expected) in enumerate(CASES):
        assert [results[f"{i}.{k}"].tolist() for k in range(len(expected))] == expected, op
        for k in range(len(expected)):
            value, array = values[f"{i}.{k}"], results[f"{i}.{k}"]
            assert (value.dtype.name == "STRING") == (array.dtype.kind in "OU"), op
            if op in RANKS_UNKNOWN:
                assert value.shape is None
            else:
                assert [n for n, d in zip(array.shape, value.shape, strict=True) if isinstance(d, int) and d != n] == []


@pytest.mark.parametrize("op", sorted(BESIDE_TENSORFLOW))
def test_what_does_not_work_beside_tensorflow_is_refused_there(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", sys)
    proto, _ = model([next(case for case in CASES if case[0] == op)])
    with pytest.raises(OnwardError, match=f"beside which {op} of onnxruntime-extensions .* without TensorFlow"):
        runners.prepare("onnxruntime", onward.load(proto))


def test_a_model_behind_a_tokenizer(tmp_path: Path) -> None:
    """A framework takes what is behind it by partition; inside a module there are no texts."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("BertTokenizer", ["text"], ["ids", "types", "mask"], domain=DOMAIN, vocab_file=VOCABULARY),
        helper.make_node("Gather", ["table", "ids"], ["found"]),
        helper.make_node("ReduceMean", ["found"], ["y"], keepdims=0, noop_with_empty_axes=0),
    ]
    table = onnx.numpy_helper.from_array(rng.normal(size=(12, 4)).astype(np.float32), "table")
    text = helper.make_tensor_value_info("text", 8, [1])
    graph = helper.make_graph(nodes, "net", [text], [helper.make_tensor_value_info("y", 1, [])], [table])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "m.onnx")
    made = onward.partition(tmp_path / "m.onnx", "torch", tmp_path / "split")
    assert [len(part.nodes) for part in made.parts] == [1, 2] and made.result is not None
    with pytest.raises(
        UnsupportedError, match=r"'text' is no tensor of numbers.* `onward partition MODEL --for torch`"
    ):
        onward.convert(tmp_path / "m.onnx", to="torch", out=tmp_path / "net", fallback="onnxruntime")
    assert onward.inspect(tmp_path / "m.onnx")["plugins"] == ["onward.plugins.shipped.onnxruntime_extensions (shipped)"]
