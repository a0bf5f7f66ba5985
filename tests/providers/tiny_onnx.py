"""A tiny encoder with its tokenizer, made here: vectors from a table, mixed with the mean of their text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
MIX = np.float32(0.25)


def table(words: list[str], dim: int) -> np.ndarray:
    """float32 [specials + words, dim]: the vector of every token before it is mixed."""
    made = np.random.default_rng(7).normal(size=(len(SPECIAL) + len(words), dim)).astype(np.float32)
    made[0] = 1000  # padding that is not masked would be seen
    return made


def tokenizer(words: list[str]) -> Tokenizer:
    vocabulary = {word: at for at, word in enumerate([*SPECIAL, *words])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a token of text
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return made


def encoder(words: list[str], dim: int, *, pooled: bool = False, inputs: int = 3) -> onnx.ModelProto:
    """The model: last_hidden_state [texts, tokens, dim], or sentence_embedding [texts, dim]."""
    names = ["input_ids", "attention_mask", "token_type_ids", "position_ids"][:inputs]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["tokens", "wide"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "middle"], ["sum"]),
        helper.make_node("ReduceSum", ["wide", "middle"], ["count"]),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("Mul", ["mean", "mix"], ["context"]),
        helper.make_node("Add", ["tokens", "context"], ["last_hidden_state"]),
        helper.make_node("Squeeze", ["mean", "middle"], ["sentence_embedding"]),
    ]
    output, shape = ("sentence_embedding", ["b", dim]) if pooled else ("last_hidden_state", ["b", "t", dim])
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"]) for name in names],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(table(words, dim), "table"),
            numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "middle"),
            numpy_helper.from_array(MIX, "mix"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def write(folder: Path, words: list[str], dim: int = 8, *, file: str = "model.onnx", **options: Any) -> Path:
    """Write an encoder folder; `files` are other files of it, with their JSON."""
    files = options.pop("files", {})
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(encoder(words, dim, **options), folder / file)
    tokenizer(words).save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder


def hidden(ids: list[int], rows: np.ndarray) -> np.ndarray:
    """What the model gives for the tokens of one text, special ones included."""
    tokens = rows[ids]
    return tokens + MIX * tokens.mean(axis=0)
