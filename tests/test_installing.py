"""Installing: a wheel with one package, the command `clq`, and files of requirements that say the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.extras import RUN_REQUIREMENTS, installing
from core.paths import ROOT
from tools.requirements import files
from tools.wheel import rewritten

HEAVY = (
    *("voyageai", "cohere", "openai", "faiss", "wordllama", "bpe_openai", "onnxruntime", "tokenizers"),
    *("pypdf", "bs4", "sentencex", "kneed", "sklearn", "pyfive"),
)
"""What the base does without."""
WITHOUT = """
import importlib, importlib.abc, pathlib, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for file in sorted(pathlib.Path("core").rglob("*.py")):
    importlib.import_module(".".join(file.with_suffix("").parts).removesuffix(".__init__"))
from core.pipeline.environment import faiss
try:
    faiss.omp_get_max_threads
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("name", files())
def test_requirements_are_those_of_the_project(name: str):
    assert (ROOT / name).read_text(encoding="utf-8") == files()[name], "make requirements"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from core.errors import ClqError", "from clq.errors import ClqError"),
        ("    import core.stats as core", "    import clq.stats as core"),
        ("from core import paths", "from clq import paths"),
        ("from coreutils import core", "from coreutils import core"),
        ('home="core.views.headroom"', 'home="clq.views.headroom"'),
        ("'Run `python -m core doctor`.'", "'Run `clq doctor`.'"),
        ('{"cores": 2, "core": 1}', '{"cores": 2, "core": 1}'),
    ],
)
def test_only_what_names_the_package_is_rewritten(source: str, expected: str):
    assert rewritten(source) == expected


def test_what_is_missing_names_what_brings_it(monkeypatch: pytest.MonkeyPatch):
    assert installing("requirements-ray.txt") == "pip install -r requirements-ray.txt"
    monkeypatch.setattr("core.extras.INSTALLED", True)
    assert installing("requirements-ray.txt") == 'pip install "clq-explorer[ray]"'
    assert installing(RUN_REQUIREMENTS) == 'pip install "clq-explorer[run]"'
    wheel = "file:///dist/clq_explorer-0.2.0-py3-none-any.whl"
    told = SimpleNamespace(read_text=lambda _: json.dumps({"url": wheel, "archive_info": {}}))
    monkeypatch.setattr("core.extras.distribution", lambda _: told)
    assert installing(RUN_REQUIREMENTS) == f'pip install "clq-explorer[run] @ {wheel}"'


@pytest.mark.slow
def test_every_module_loads_without_what_only_evaluations_need():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *HEAVY], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ClqError An evaluation needs the package faiss.")


MEASURE = """
from core.cli.app import app
for words in (["import", "shop"], ["measure", "mine:find", "--collection", "shop", "-k", "2", "--yes"]):
    app(words, standalone_mode=False)
assert not {name.partition(".")[0] for name in sys.modules} & set(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_custom_pipeline_is_measured_without_what_only_evaluations_need(tmp_path: Path):
    (tmp_path / "mine.py").write_text("def find(query, k=5): return ['a', 'b'][:k]")
    (tmp_path / "shop" / "qrels").mkdir(parents=True)
    passages = [json.dumps({"_id": name, "title": "", "text": name}) for name in "ab"]
    (tmp_path / "shop" / "corpus.jsonl").write_text("\n".join(passages))
    (tmp_path / "shop" / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "a"}))
    (tmp_path / "shop" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    code = WITHOUT.partition("for file in")[0] + MEASURE
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "CLQ_STORE": str(tmp_path / "store")}
    done = subprocess.run(
        [sys.executable, "-c", code, *HEAVY],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "mine:find, K = 2: RA-nWG@10 1.000" in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_wheel_has_one_package_which_names_no_other(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {name.partition("/")[0].partition("-")[0] for name in names} == {"clq", "clq_explorer"}
        for name in names:
            if name.endswith(".py"):
                source = archive.read(name).decode()
                assert not re.search(
                    r"^\s*(from|import) core\b|[\"']core\.[a-z]|-m core\b", source, re.MULTILINE
                )
    assert {"clq/app.py", "clq/py.typed", "clq/.streamlit/config.toml", "clq/pages/run.py"} <= set(names)
    assert {"clq/data/prices/clq_paper.toml", "clq/data/demo/passages.parquet"} <= set(names)
    assert not any(name.endswith(".sqlite") or name.startswith("clq/data/store") for name in names)


@pytest.mark.slow
def test_the_wheel_decides_over_a_table_where_another_package_is_called_core(site: Path, tmp_path: Path):
    work, home = tmp_path / "work", tmp_path / "home"
    (work / "core").mkdir(parents=True)
    (work / "core" / "__init__.py").write_text("raise RuntimeError('not this one')")
    (work / "mine.csv").write_text(
        "stack,RA-nWG@10,p50 latency ms,cost per 1k\nBM25,0.49,12,0.001\nhybrid,0.61,80,0.4\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(site), "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    environ.pop("CLQ_STORE", None)

    def clq(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "clq", *words],
            cwd=work,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    added = clq("import", "mine.csv")
    assert added.returncode == 0, added.stderr
    assert (home / "data" / "clq-explorer" / "store").is_dir()
    decided = clq("decide", "--sla-ms", "50", "--format", "json")
    assert decided.returncode == 0, decided.stderr
    assert "BM25" in decided.stdout
    assert json.loads(decided.stdout)
    library = (
        "import clq; print(clq.open().decide(sla_ms=50).chosen.name, 'core' in __import__('sys').modules)"
    )
    asked = subprocess.run(
        [sys.executable, "-c", library], cwd=work, env=environ, capture_output=True, text=True, check=False
    )
    assert asked.stdout.split() == ["BM25", "False"], asked.stderr
    refused = clq("run", "nothing.toml")
    assert "python -m core" not in refused.stderr
    assert sorted(path.name for path in work.iterdir()) == ["core", "mine.csv"]
