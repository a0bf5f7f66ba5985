import functools
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.providers import onnx_folder
from core.providers.base import Purpose
from core.providers.calls import Journal
from core.providers.config import Device, ModelConfig
from core.providers.embed import TokenEmbedder, make_embedder, unit_rows
from tests.providers import tiny_onnx

WORDS = ["the", "a", "of", "wing", "flow", "heat", "shock", "plate", "wave", "passage", "query", ":", "fast"]
ROWS = tiny_onnx.table(WORDS, 8)
TEXTS = ["the flow of heat", "Wing", "fast FAST wave unknownword : plate", "the the the"]


def embedder(folder: Path, **changes: Any) -> TokenEmbedder:
    made = make_embedder(
        ModelConfig(provider="onnx", model="tiny", path=folder, **changes), changes.get("dim")
    )
    assert isinstance(made, TokenEmbedder)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_onnx.write(tmp_path_factory.mktemp("tiny"), WORDS)


def ids(text: str) -> list[int]:
    known = {word: at + 4 for at, word in enumerate(WORDS)}
    return [2, *(known.get(word, 1) for word in text.lower().split()), 3]


def naive(text: str, pooling: str = "mean") -> np.ndarray:
    tokens = tiny_onnx.hidden(ids(text), ROWS)
    pooled = {"mean": tokens.mean(axis=0), "cls": tokens[0], "last": tokens[-1]}[pooling]
    return pooled / np.linalg.norm(pooled)


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_vectors_are_those_of_the_model(folder: Path, pooling: str):
    made = embedder(folder, pooling=pooling)
    vectors = made.embed(TEXTS)
    np.testing.assert_allclose(vectors, [naive(text, pooling) for text in TEXTS], atol=1e-5)
    assert (made.dim, made.full_dim, made.local, made.item) == (8, 8, True, "local-cpu")
    (used,) = made.embed_query("heat").usage
    assert (used.item, used.unit) == ("local-cpu", "cpu_ms")


def test_padding_changes_nothing(folder: Path):
    together, alone = embedder(folder), embedder(folder, batch_items=1)
    np.testing.assert_allclose(together.embed(TEXTS), alone.embed(TEXTS), atol=1e-6)


def test_vectors_as_they_are(folder: Path):
    made = embedder(folder, normalised=False)
    lengths = np.linalg.norm(made.embed(TEXTS), axis=1)
    assert not made.normalised
    assert np.abs(lengths - 1).min() > 0.05
    np.testing.assert_allclose(unit_rows(made.embed(TEXTS)), [naive(text) for text in TEXTS], atol=1e-5)


def test_a_model_that_may_be_cut(folder: Path):
    full = embedder(folder).embed(TEXTS)
    small = embedder(folder, matryoshka=True, dims=(4, 8), dim=4)
    assert (small.dim, small.full_dim) == (4, 8)
    np.testing.assert_allclose(small.embed(TEXTS), unit_rows(full[:, :4]), atol=1e-6)
    with pytest.raises(InputError, match="no 5 dimensions"):
        embedder(folder, matryoshka=True, dims=(4, 8), dim=5)
    with pytest.raises(InputError, match=r"no 4 dimensions.*one of 8"):
        embedder(folder, dim=4)
    with pytest.raises(InputError, match="no 16 dimensions"):
        embedder(folder, matryoshka=True, dim=16)


def test_prefixes(folder: Path):
    prefixes = {Purpose.QUERY: "query : ", Purpose.PASSAGE: "passage : "}
    made = embedder(folder, prefixes=prefixes)
    np.testing.assert_allclose(made.embed_query("heat").value, naive("query : heat"), atol=1e-5)
    np.testing.assert_allclose(made.embed(["heat"])[0], naive("passage : heat"), atol=1e-5)
    np.testing.assert_allclose(made.embed(["heat"], Purpose.QUERY)[0], naive("query : heat"), atol=1e-5)


def test_the_folder_states_its_habits(tmp_path: Path):
    folder = tiny_onnx.write(
        tmp_path,
        WORDS,
        file="onnx/model.onnx",
        inputs=2,
        files={
            "1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
            "config_sentence_transformers.json": {"prompts": {"query": "query : ", "document": ""}},
            "tokenizer_config.json": {"model_max_length": 5},
        },
    )
    made = embedder(folder)
    np.testing.assert_allclose(made.embed_query("heat").value, naive("query : heat", "cls"), atol=1e-5)
    np.testing.assert_allclose(made.embed(["the flow of heat"])[0], naive("the flow of", "cls"), atol=1e-5)


def test_a_model_that_pools_by_itself(tmp_path: Path):
    made = embedder(tiny_onnx.write(tmp_path, WORDS, pooled=True))
    expected = unit_rows(np.array([ROWS[ids(text)].mean(axis=0) for text in TEXTS]))
    np.testing.assert_allclose(made.embed(TEXTS), expected, atol=1e-5)
    with pytest.raises(InputError, match="none per token"):
        made.embed_tokens("heat")


def test_token_vectors_and_where_they_stand(folder: Path):
    text = "The  flow of (heat)"
    found = embedder(folder, prefixes={Purpose.PASSAGE: "passage : "}).embed_tokens(text)
    assert [text[start:end] for start, end in found.spans] == ["The", "flow", "of", "(", "heat", ")"]
    whole = tiny_onnx.hidden(ids("passage : the flow of ( heat )"), ROWS)
    np.testing.assert_allclose(found.vectors, whole[3:-1], atol=1e-5)
    assert found.vectors.dtype == np.float32
    assert found.spans.dtype == np.int64


def test_the_vector_of_a_chunk_is_the_mean_of_its_tokens(folder: Path):
    made = embedder(folder)
    tokens = made.embed_tokens("the flow of heat").vectors
    pooled = made.pooled(tokens[1:3])
    mean = tokens[1:3].mean(axis=0)
    np.testing.assert_allclose(pooled, mean / np.linalg.norm(mean), atol=1e-6)


@functools.cache
def _of_length(length: int) -> TokenEmbedder:
    with tempfile.TemporaryDirectory() as folder:
        made = embedder(tiny_onnx.write(Path(folder), WORDS), max_tokens=length)
        made.embed_tokens("the")  # everything is read
        return made


@pytest.mark.slow
@given(st.lists(st.sampled_from(WORDS[:9]), min_size=1, max_size=60), st.integers(6, 20))
def test_windows_lose_no_token_and_repeat_none(words: list[str], length: int):
    made = _of_length(length)
    text = " ".join(words)
    found = made.embed_tokens(text)
    assert [text[start:end] for start, end in found.spans] == words
    assert found.vectors.shape == (len(words), 8)
    # A token's own part is in its vector; the rest is the context of one of the windows.
    rest = found.vectors - ROWS[[WORDS.index(word) + 4 for word in words]]
    windows = 1 + math.ceil(max(0, len(words) - (length - 2)) / (length - 2 - length // 4))
    alike = np.abs(rest[:, None] - rest[None]).max(axis=2) < 1e-4  # rounding would part what lies on a half
    assert len(np.unique(alike, axis=0)) <= windows


def test_empty_text(folder: Path):
    found = embedder(folder).embed_tokens("")
    assert found.vectors.shape == (0, 8)
    assert found.spans.shape == (0, 2)


def test_other_files_are_another_model_to_the_journal(folder: Path, tmp_path: Path):
    journal = Journal(tmp_path / "replies.sqlite")
    config = ModelConfig(provider="onnx", model="tiny", path=folder)
    assert make_embedder(config, journal=journal).embed_query("heat").fresh
    assert not make_embedder(config, journal=journal).embed_query("heat").fresh
    other = tiny_onnx.write(tmp_path / "other", [*WORDS, "more"])
    second = make_embedder(config.model_copy(update={"path": other}), journal=journal).embed_query("heat")
    assert second.fresh
    assert len(journal) == 2


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda path: (path / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda path: (path / "tokenizer.json").write_text("{}"), "tokenizer cannot be read"),
        (lambda path: (path / "model.onnx").unlink(), "found: none"),
        (lambda path: (path / "model.onnx").write_bytes(b"not a model"), "cannot be loaded"),
        (lambda path: (path / "config.json").write_text("{"), "not JSON"),
    ],
)
def test_a_folder_that_is_not_an_encoder(tmp_path: Path, break_it: Any, says: str):
    folder = tiny_onnx.write(tmp_path, WORDS)
    break_it(folder)
    with pytest.raises(InputError, match=says):
        embedder(folder)


def test_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(InputError, match="exported model"):
        embedder(tmp_path / "nowhere")
    with pytest.raises(InputError, match="Set path"):
        make_embedder(ModelConfig(provider="onnx", model="tiny"))


def test_two_models_in_one_folder(tmp_path: Path):
    folder = tiny_onnx.write(tmp_path, WORDS, file="one.onnx")
    assert embedder(folder).dim == 8
    (folder / "two.onnx").write_bytes((folder / "one.onnx").read_bytes())
    with pytest.raises(InputError, match=r"found: one\.onnx, two\.onnx"):
        embedder(folder)


def test_an_input_that_no_tokenizer_gives(tmp_path: Path):
    with pytest.raises(InputError, match="'position_ids'"):
        embedder(tiny_onnx.write(tmp_path, WORDS, inputs=4))


@pytest.mark.parametrize(
    ("there", "device", "engines"),
    [
        (["CPUExecutionProvider"], None, ["CPUExecutionProvider"]),
        (["CPUExecutionProvider"], "cpu", ["CPUExecutionProvider"]),
        (["CUDAExecutionProvider", "CPUExecutionProvider"], "cpu", ["CPUExecutionProvider"]),
        (
            ["CUDAExecutionProvider", "CPUExecutionProvider"],
            None,
            ["CUDAExecutionProvider", "CPUExecutionProvider"],
        ),
        (
            ["CUDAExecutionProvider", "CPUExecutionProvider"],
            "cuda",
            ["CUDAExecutionProvider", "CPUExecutionProvider"],
        ),
    ],
)
def test_a_graphics_processor_is_taken_where_one_is(
    there: list[str], device: Device | None, engines: list[str]
):
    assert onnx_folder._engines(there, device) == engines


def test_a_graphics_processor_that_is_not_there():
    with pytest.raises(InputError, match="onnxruntime-gpu"):
        onnx_folder._engines(["CPUExecutionProvider"], "cuda")
