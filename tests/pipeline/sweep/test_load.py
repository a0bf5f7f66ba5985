"""Specifications as people write them, and what they are told when something is wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from core.errors import InputError
from core.pipeline.sweep import MAX_BYTES, json_schema, load, parse, presets
from core.pipeline.sweep.fields import Table
from core.pipeline.sweep.model import Axes, Point, SweepSpec
from core.pipeline.sweep.problems import SpecError, suggestion

WHOLE = """
name = "everything"
[collection]
path = "corpus/"
format = "documents"
id = "mine"
language = "french"
columns = { text = "body" }
[queries]
path = "questions.jsonl"
limit = 50
seed = 7
[golden_set]
path = "spans.tsv"
mapping = "1-5"
coverage = 0.4
[axes]
method = "one-factor"
mode = ["sparse", "dense", "hybrid"]
bm25 = [{ k1 = 0.9, b = 0.4 }, { language = "english" }]
embedder = ["wordllama", { name = "mine", dim = [3, 5] }]
dim = [64, 128]
index = ["flat", { name = "hnsw-f32", links = 16 }]
metric = ["cosine", "l2"]
candidates = [20, 50]
fusion = ["rrf", { method = "weighted", weights = [0.3, 0.7] }]
reranker = ["none", "rerank-2.5"]
rewrite = ["none", "rules"]
chunker = [{ method = "sentence", overlap = 70 }, "page"]
cut = ["none", { method = "percentile", q = 0.9 }]
chunks_sent = ["all", 10]
[baseline]
mode = "dense"
index = "flat"
[[stack]]
mode = "sparse"
candidates = 20
[latency]
warm_up = 0
repeats = 5
rounds = 3
pause_minutes = 1.5
order = "shuffled"
rerank = "deepest"
[budget]
usd = 5
prices = "list"
amortise_over_queries = 100_000
[models.mine]
provider = "openai"
base_url = "http://localhost:8080/v1"
dims = [3, 5]
"""


def messages(text: str, form: str | None = "toml", name: str = "s.toml") -> list[str]:
    with pytest.raises(SpecError) as refused:
        parse(text, form, name=name)
    assert str(refused.value).split("\nerror: ") == [str(each) for each in refused.value.problems]
    return [str(each) for each in refused.value.problems]


def test_toml_yaml_and_json_say_the_same(tmp_path: Path):
    data = tomllib.loads(WHOLE)
    for name, text in {
        "s.toml": WHOLE,
        "s.yaml": yaml.safe_dump(data),
        "s.yml": yaml.safe_dump(data),
        "s.json": json.dumps(data),
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    specs = [load(tmp_path / name) for name in ("s.toml", "s.yaml", "s.yml", "s.json")]
    specs += [parse(text, folder=tmp_path) for text in (WHOLE, yaml.safe_dump(data), json.dumps(data))]
    assert all(each == specs[0] for each in specs)
    assert specs[0].models["mine"].name == specs[0].models["mine"].model == "mine"
    assert specs[0].latency.passes == 15


def test_a_specification_survives_its_own_json():
    spec = parse(WHOLE)
    assert SweepSpec.model_validate(json.loads(spec.model_dump_json())) == spec


@pytest.mark.slow
def test_the_schema_takes_what_is_valid_and_refuses_what_is_not():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(WHOLE), schema)
    jsonschema.validate({"collection": "corpus/", "axes": {"mode": "dense", "fusion": "rrf"}}, schema)
    for bad in ({}, {"collection": "c", "axs": {}}, {"collection": "c", "axes": {"mode": "hybrd"}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)


def test_paths_are_relative_to_the_file_and_single_words_name_what_is_stored(tmp_path: Path):
    (tmp_path / "there").mkdir()
    text = 'collection = "{}"\ngolden_set = "{}"\nqueries = "q"\n[models.m]\nprovider = "onnx"\npath = "m"\n'
    file = tmp_path / "s.toml"
    file.write_text(text.format("there", "judged"))
    spec = load(str(file))
    assert (spec.collection.path, spec.collection.stored) == (tmp_path / "there", None)
    assert spec.golden_set is not None
    assert (spec.golden_set.path, spec.golden_set.stored) == (None, "judged")
    assert (spec.queries.path, spec.models["m"].path) == (tmp_path / "q", tmp_path / "m")
    file.write_text(text.format("./elsewhere", "qrels.tsv"))
    spec = load(file)
    assert spec.golden_set is not None
    assert (spec.collection.path, spec.golden_set.path) == (tmp_path / "elsewhere", tmp_path / "qrels.tsv")


HEAD = 'collection = "c/"\n'
_SHOWN = 12  # names that a refusal lists


def known(table: type[Table]) -> str:
    """The keys of a table as a refusal lists them."""
    names = sorted(table.model_fields)
    return f"{', '.join(names[:_SHOWN])} (+{len(names) - _SHOWN} more)."


REFUSED = {
    "no collection": ('name = "x"\n', "s.toml, collection: The key 'collection' is missing."),
    "unknown key": (
        HEAD + "[axes]\nembeder = 3\n",
        "s.toml:3, axes.embeder: There is no key 'embeder' here. "
        f'Did you mean "embedder"? Known: {known(Axes)}',
    ),
    "unknown section": (
        HEAD + "[latencies]\n",
        "s.toml:2, latencies: There is no key 'latencies' here. "
        f'Did you mean "latency"? Known: {known(SweepSpec)}',
    ),
    "unknown value": (
        HEAD + '[axes]\n# a comment\nmode = ["dense", "hybrd"]\n',
        "s.toml:4, axes.mode[2]: 'hybrd' is not known here. "
        'Did you mean "hybrid"? Known: dense, hybrid, sparse.',
    ),
    "nothing like it": (
        HEAD + '[latency]\norder = "zzz"\n',
        "s.toml:3, latency.order: 'zzz' is not known here. Known: sequential, shuffled.",
    ),
    "text for a number": (
        HEAD + '[axes]\ndim = "64"\n',
        "s.toml:3, axes.dim: '64' is not a whole number.",
    ),
    "true for a number": (HEAD + "[axes]\ndim = true\n", "s.toml:3, axes.dim: True is not a whole number."),
    "too small": (
        HEAD + "[axes]\ncandidates = [50, 0]\n",
        "s.toml:3, axes.candidates[2]: 0 must be 1 or more.",
    ),
    "too large": (
        HEAD + "[golden_set]\npath = 'g.tsv'\ncoverage = 1.5\n",
        "s.toml:4, golden_set.coverage: 1.5 must be 1 or less.",
    ),
    "chunks sent": (
        HEAD + "[axes]\nchunks_sent = [2.5]\n",
        "s.toml:3, axes.chunks_sent[1]: 2.5 is not a whole number.",
    ),
    "a table is wanted": (HEAD + "[axes]\nfusion = 3\n", "s.toml:3, axes.fusion: 3 is not a table."),
    "no method": (
        HEAD + "[axes]\ncut = [{ q = 1 }]\n",
        "s.toml:3, axes.cut[1].method: The key 'method' is missing.",
    ),
    "in a list of tables": (
        HEAD + '[[stack]]\nmode = "sparse"\n[[stack]]\nmode = "sparse"\ndimm = 3\n',
        f"s.toml:6, stack[2].dimm: There is no key 'dimm' here. Did you mean \"dim\"? Known: {known(Point)}",
    ),
    "in an inline table": (
        HEAD + "[axes]\nbm25 = [{ k1 = 1.2, c = 3 }]\n",
        "s.toml:3, axes.bm25[1].c: There is no key 'c' here. Known: b, k1, language.",
    ),
    "two places": (
        '[collection]\npath = "c/"\nstored = "c"\n',
        "s.toml:1, collection: Give one of path and stored.",
    ),
    "no place": ('[collection]\nlanguage = "french"\n', "s.toml:1, collection: Give one of path and stored."),
    "a model without a provider": (
        HEAD + "[models.mine]\ndims = [3]\n",
        "s.toml:2, models.mine.provider: The key 'provider' is missing.",
    ),
    "a model with a key in the file": (
        HEAD + '[models.mine]\nprovider = "voyage"\napi_key = "pa-secret"\n',
        "s.toml:4, models.mine.api_key: There is no key 'api_key' here. ",
    ),
    "no such preset": (
        HEAD + 'preset = "clq-papr"\n',
        "s.toml:2, preset: There is no preset 'clq-papr'. "
        'Did you mean "clq-paper"? Known: clq-paper, quick-local.',
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_one_problem_has_its_place_and_the_nearest_valid_name(text: str, message: str):
    (found,) = messages(text)
    assert found.startswith(message)
    assert found == message or message.endswith(" ")
    assert "secret" not in found


def test_all_problems_are_told_at_once_in_the_order_of_the_file():
    text = 'nam = 1\n[axes]\nmode = "x"\ndim = [1, "2", 0]\n[latency]\nrounds = 0\n'
    assert [each.partition(": ")[0] for each in messages(text)] == [
        "s.toml, collection",
        "s.toml:1, nam",
        "s.toml:3, axes.mode",
        "s.toml:4, axes.dim[2]",
        "s.toml:4, axes.dim[3]",
        "s.toml:6, latency.rounds",
    ]


def test_yaml_has_lines_too():
    text = "collection: c/\naxes:\n  dim:\n    - 64\n    - many\n  modes: dense\n"
    assert [each.partition(": ")[0] for each in messages(text, "yaml", "s.yaml")] == [
        "s.yaml:5, axes.dim[2]",
        "s.yaml:6, axes.modes",
    ]


UNREADABLE = {
    "toml": ("collection = \n", "toml", "Not readable as TOML"),
    "toml twice": ("name = 'a'\nname = 'b'\n", "toml", "Not readable as TOML"),
    "yaml": ("collection: [1\n", "yaml", "Not readable as YAML"),
    "yaml twice": ("axes:\n  dim: 1\n  dim: 2\n", "yaml", "the key 'dim' stands twice, line 3"),
    "yaml alias": ("a: &x [1]\nb: *x\n", "yaml", r"an alias \(\*x\) is not allowed"),
    "yaml object": ("a: !!python/object/apply:os.system ['true']\n", "yaml", "Not readable as YAML"),
    "json": ('{"collection": }', "json", "Not readable as JSON"),
    **{
        f"deep {name}, {form}": (text, form, "more than 16 levels deep")
        for name, text, forms in (
            ("array", "a = " + "[" * 3000 + "]" * 3000 + "\n", ("toml", None)),
            ("table", "a = " + "{a = " * 3000 + "1" + "}" * 3000 + "\n", ("toml", None)),
            ("keys", ".".join("a" * 3000) + " = 1\n", ("toml", None)),
            ("header", 'collection = "c"\n[models.' + ".".join("a" * 3000) + "]\nx = 1\n", ("toml", None)),
            ("object", '{"a":' * 3000 + "1" + "}" * 3000, ("json", "yaml", None)),
            ("list", "a: " + "[" * 3000 + "]" * 3000 + "\n", ("yaml", None)),
            ("just too deep", '{"axes":' + "[" * 16 + "]" * 16 + "}", ("json", "yaml", None)),
            ("never closed", '{"a":' * 3000, ("json", "yaml", None)),
        )
        for form in forms
    },
    "a list": ("- 1\n- 2\n", "yaml", "It holds no keys."),
    "nothing": ("", "yaml", "It holds no keys."),
    "guessed toml": ("[axes\ndim = 3\n", None, "Not readable as TOML"),
    "guessed yaml": ("axes: [\n", None, "Not readable as YAML"),
}


@pytest.mark.parametrize(("text", "form", "says"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_specification_at_all(text: str, form: str | None, says: str):
    with pytest.raises(SpecError, match=says):
        parse(text, form)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secretpass@127.0.0.1:9/v1",
        "ftp://h/v1",
        "127.0.0.1:8000",
        "http://a\\\\@b/v1",
        "http://h:x",
    ],
)
def test_addresses_that_are_refused(url: str):
    text = f'collection = "c"\n[models.m]\nprovider = "openai"\nbase_url = "{url}"\n'
    (said,) = messages(text, "toml", "s.toml")
    assert said.startswith("s.toml:4, models.m.base_url: base_url is an address such as ")
    assert "secretpass" not in said


def test_files_that_are_refused(tmp_path: Path):
    big, binary, other = tmp_path / "big.toml", tmp_path / "b.yaml", tmp_path / "s.txt"
    big.write_text("#" * (MAX_BYTES + 1))
    binary.write_bytes(b"\xff\xfe\x00")
    other.write_text("x")
    for path, says in {
        big: "too large",
        binary: "cannot be read as UTF-8",
        other: r"is a \.toml, \.yaml or \.json file",
        tmp_path / "none.toml": "There is no such file",
    }.items():
        with pytest.raises(InputError, match=says):
            load(path)


def test_a_preset_holds_where_the_specification_is_silent():
    text = 'preset = "clq-paper"\ncollection = "c/"\nqueries = "q.jsonl"\n[axes]\nindex = "flat"\n'
    spec = parse(text, folder=Path("/base"))
    assert spec.queries.path == Path("/base/q.jsonl")
    assert spec.queries.limit == 50
    (axes,) = spec.axes
    assert [each.name for each in axes.index] == ["flat"]
    assert axes.candidates == (50, 100, 150, 200)
    assert spec.latency.rounds == 3
    block = '[[axes]]\nmode = "sparse"\n'
    assert parse('preset = "clq-paper"\ncollection = "c/"\n' + block).axes[0].candidates == (50,)


@pytest.mark.parametrize("name", presets())
def test_every_preset_needs_a_collection_only(name: str):
    spec = parse(f'preset = "{name}"\ncollection = "c/"\n')
    assert spec.axes
    assert not spec.models


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Dense", 'Did you mean "dense"? Known: dense, sparse.'),
        ("", "Known: dense, sparse."),
        (3, "Known: dense, sparse."),
    ],
)
def test_suggestions(name: Any, says: str):
    assert suggestion(name, ["sparse", "dense"]) == says
