"""A local cross-encoder: a tiny model made here, against the same sums in NumPy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, processors

from core.errors import InputError
from core.providers.calls import Journal
from core.providers.config import ModelConfig
from core.providers.rerank import make_reranker
from core.records import Basis
from tests.providers import tiny_onnx

WORDS = ["the", "flow", "heat", "wing", "of", "over", "a", "plate"]
QUERY = "heat flow"
PASSAGES = ["the wing", "heat", "flow of heat over a plate", "unknown words", ""]


def weights() -> np.ndarray:
    """float32 [tokens]: what each token adds; twice that in the passage."""
    made = np.random.default_rng(3).normal(size=len(tiny_onnx.SPECIAL) + len(WORDS)).astype(np.float32)
    made[0] = 1000  # padding that is not masked would be seen
    return made


def model(outputs: int) -> onnx.ModelProto:
    """logits [pairs, outputs]: Σ mask · weight · (1 + type), times 1, 2, 3… per output."""
    nodes = [
        helper.make_node("Gather", ["weights", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["type"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["type", "one"], ["times"]),
        helper.make_node("Mul", ["each", "mask"], ["masked"]),
        helper.make_node("Mul", ["masked", "times"], ["weighed"]),
        helper.make_node("ReduceSum", ["weighed", "last"], ["sum"]),
        helper.make_node("Mul", ["sum", "scales"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "cross",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", outputs])],
        [
            numpy_helper.from_array(weights(), "weights"),
            numpy_helper.from_array(np.array(1, dtype=np.float32), "one"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "last"),
            numpy_helper.from_array(np.arange(1, outputs + 1, dtype=np.float32)[None, :], "scales"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def tokenizer() -> Tokenizer:
    made = tiny_onnx.tokenizer(WORDS)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return made


def write(folder: Path, *, outputs: int = 1, length: int = 512) -> ModelConfig:
    onnx.save(model(outputs), folder / "model.onnx")
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": length}))
    return ModelConfig(provider="onnx", model="tiny-cross", path=folder)


def naive(query: str, passage: str, room: int = 512) -> float:
    """The sums by hand, with the passage cut to what room is left for it."""
    each = weights()

    def ids(text: str) -> list[int]:
        known = {word: at for at, word in enumerate([*tiny_onnx.SPECIAL, *WORDS])}
        return [known.get(word, 1) for word in text.split()]

    asked = [2, *ids(query), 3]
    told = [*ids(passage)[: room - len(asked) - 1], 3]
    return float(each[asked].sum() + 2 * each[told].sum())


def test_scores_are_the_models_numbers(tmp_path: Path):
    reranker = make_reranker(write(tmp_path))
    reply = reranker.rerank(QUERY, PASSAGES)
    wanted = [naive(QUERY, text) for text in PASSAGES]
    np.testing.assert_allclose(reply.value.scores, wanted, rtol=1e-5)
    assert reply.value.order.tolist() == np.argsort(-np.array(wanted), kind="stable").tolist()
    assert reply.details["truncated"] == 0
    assert (reranker.name, reranker.item, reranker.local) == ("tiny-cross", "local-cpu", True)
    (used,) = reply.usage
    assert (used.item, used.unit, used.basis) == ("local-cpu", "cpu_ms", Basis.MEASURED)


def test_a_score_does_not_depend_on_the_passages_beside_it(tmp_path: Path):
    config = write(tmp_path)
    together = make_reranker(config).rerank(QUERY, PASSAGES).value.scores
    alone = make_reranker(config.model_copy(update={"batch_items": 1}))
    reply = alone.rerank(QUERY, PASSAGES)
    np.testing.assert_allclose(reply.value.scores, together, rtol=1e-5)
    assert reply.details["calls"] == 5


def test_the_end_of_a_long_passage_is_cut_and_that_is_counted(tmp_path: Path):
    reranker = make_reranker(write(tmp_path, length=8))
    passages = ["wing", "the flow of heat over a plate", "heat over a"]
    reply = reranker.rerank(QUERY, passages)
    np.testing.assert_allclose(reply.value.scores, [naive(QUERY, text, 8) for text in passages], rtol=1e-5)
    assert reply.details["truncated"] == 1
    shorter = make_reranker(write(tmp_path).model_copy(update={"max_tokens": 8}))
    assert shorter.rerank(QUERY, passages).details["truncated"] == 1


def test_a_query_longer_than_half_of_the_model_is_cut_too(tmp_path: Path):
    reranker = make_reranker(write(tmp_path, length=8))
    reply = reranker.rerank("heat flow " * 20, ["wing", "the plate"])
    assert reply.details["truncated"] == 2
    assert np.isfinite(reply.value.scores).all()
    after = reranker.rerank(QUERY, PASSAGES)  # a short query afterwards is whole again
    np.testing.assert_allclose(after.value.scores[1], naive(QUERY, PASSAGES[1], 8), rtol=1e-5)


def test_of_two_outputs_the_second_means_relevant(tmp_path: Path):
    reply = make_reranker(write(tmp_path, outputs=2)).rerank(QUERY, PASSAGES)
    np.testing.assert_allclose(reply.value.scores, [naive(QUERY, text) for text in PASSAGES], rtol=1e-5)


def test_what_is_no_cross_encoder_is_refused_before_anything_is_asked(tmp_path: Path):
    with pytest.raises(InputError, match=r"logits \[1, 3\] for 1 pairs"):
        make_reranker(write(tmp_path, outputs=3))
    encoder = tmp_path / "encoder"
    tiny_onnx.write(encoder, WORDS)
    with pytest.raises(InputError, match=r"last_hidden_state .* not one number for each"):
        make_reranker(ModelConfig(provider="onnx", model="encoder", path=encoder))
    with pytest.raises(InputError, match=r"no tokenizer\.json"):
        make_reranker(ModelConfig(provider="onnx", model="nothing", path=tmp_path / "nothing"))
    with pytest.raises(InputError, match="needs its folder"):
        make_reranker(ModelConfig(provider="onnx", model="nowhere"))


def test_planning_opens_nothing(tmp_path: Path):
    config = ModelConfig(provider="onnx", model="nothing", path=tmp_path / "nothing")
    (amount,) = make_reranker(config, ready=False).expected(10, [100])
    assert (amount.item, amount.unit, amount.amount) == ("local-cpu", "cpu_ms", None)


def test_scores_are_recalled_for_the_same_files_only(tmp_path: Path):
    journal = Journal(tmp_path / "replies.sqlite")
    folder = tmp_path / "model"
    folder.mkdir()
    config = write(folder)
    assert make_reranker(config, journal=journal).rerank(QUERY, PASSAGES).fresh
    assert not make_reranker(config, journal=journal).rerank(QUERY, PASSAGES).fresh
    write(folder, outputs=2)
    assert make_reranker(config, journal=journal).rerank(QUERY, PASSAGES).fresh
    shorter = config.model_copy(update={"max_tokens": 8})
    assert make_reranker(shorter, journal=journal).rerank(QUERY, PASSAGES).fresh
    journal.close()
