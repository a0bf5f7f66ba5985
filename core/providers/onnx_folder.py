"""Local ONNX models: a folder with model.onnx and tokenizer.json, as exported from a model hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.jobs import cores
from core.providers.config import Device

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
USUAL_LENGTH = 512
_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_LONGEST_LENGTH = 1_000_000  # tokenizers without a limit state an absurd one


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """An opened model."""

    path: Path  # the folder
    session: Any  # onnxruntime's session
    max_tokens: int  # tokens that the model reads at once, special ones included
    digest: str  # identifies the model's and the tokenizer's files

    def tokenizer(self, *, stride: int = 0) -> Any:  # noqa: ANN401 - the package's own type
        """Return a tokenizer that cuts at `max_tokens` and pads to the longest text."""
        from tokenizers import Tokenizer  # noqa: PLC0415 - only needed with local models

        try:
            tokenizer = Tokenizer.from_file(str(self.path / "tokenizer.json"))
        except Exception as error:  # the package raises bare exceptions
            raise InputError(
                f"The tokenizer cannot be read: {error}.", where=str(self.path / "tokenizer.json")
            ) from error
        known = [
            number for token in ("[PAD]", "<pad>") if (number := tokenizer.token_to_id(token)) is not None
        ]
        padding = {"pad_id": next(iter(known), 0), "pad_token": "[PAD]", **(tokenizer.padding or {})}
        tokenizer.enable_truncation(max_length=self.max_tokens, stride=stride)
        tokenizer.enable_padding(pad_id=padding["pad_id"], pad_token=padding["pad_token"])
        return tokenizer

    def run(self, encodings: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Return all outputs by name for encodings that are padded to one length."""
        given = {
            "input_ids": [encoding.ids for encoding in encodings],
            "attention_mask": [encoding.attention_mask for encoding in encodings],
            "token_type_ids": [encoding.type_ids for encoding in encodings],
        }
        feed = {}
        for get_input in self.session.get_inputs():
            if get_input.name not in given:
                raise InputError(
                    f"The model wants an input {get_input.name!r}.",
                    where=str(self.path),
                    do="Use an encoder of input_ids, attention_mask and token_type_ids.",
                )
            kind = np.int32 if get_input.type == "tensor(int32)" else np.int64
            feed[get_input.name] = np.array(given[get_input.name], dtype=kind)
        names = [get_output.name for get_output in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feed), strict=True))


def open_folder(path: Path, max_tokens: int | None = None, device: Device | None = None) -> OnnxFolder:
    """Open a model on a device."""
    file = _model_file(path)
    import onnxruntime  # noqa: PLC0415 - only needed with local models

    engines = _engines(onnxruntime.get_available_providers(), device)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores()
    # a waiting thread that spins takes time from the one that works, and counts as time of the processor
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=engines)
    except Exception as error:  # the runtime's exceptions have no common base
        raise InputError(f"The model cannot be loaded: {error}", where=str(file)) from error
    most = _length(path)
    return OnnxFolder(path, session, min(max_tokens or most, most), _digest(file, path / "tokenizer.json"))


def read_json(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; empty if the file does not exist."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:
        raise InputError(f"The file is not JSON: {error}.", where=str(path)) from error
    return value if isinstance(value, dict) else {}


def _engines(there: Sequence[str], device: Device | None) -> list[str]:
    """Return the engines of a device; each step runs on the first one that supports it."""
    if device == "cuda" and _CUDA not in there:
        raise InputError(
            "ONNX models find no GPU here.",
            where="device",
            do="Install onnxruntime-gpu in place of onnxruntime, or leave device out.",
        )
    return [_CUDA, _CPU] if device != "cpu" and _CUDA in there else [_CPU]


def _model_file(path: Path) -> Path:
    for name in ("tokenizer.json", ""):
        if not (path / name).exists():
            raise InputError(
                f"There is no {name or 'such folder'}.",
                where=str(path),
                do="Give the folder of an exported model, with model.onnx and tokenizer.json.",
            )
    files = [path / name for name in MODEL_FILES if (path / name).is_file()] or sorted(path.glob("*.onnx"))
    if len(files) == 0 or (len(files) > 1 and files[0].name != "model.onnx"):
        shown = ", ".join(file.name for file in files) or "none"
        raise InputError(f"One model.onnx was expected; found: {shown}.", where=str(path))
    return files[0]


def _length(path: Path) -> int:
    """Return the shortest limit that the folder's files state."""
    named = (
        read_json(path / "sentence_bert_config.json").get("max_seq_length"),
        read_json(path / "tokenizer_config.json").get("model_max_length"),
        read_json(path / "config.json").get("max_position_embeddings"),
    )
    limits = [int(limit) for limit in named if isinstance(limit, int | float) and 0 < limit < _LONGEST_LENGTH]
    return min(limits, default=USUAL_LENGTH)


def _digest(*files: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()
