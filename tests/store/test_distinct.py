"""Ids of a column larger than memory: the same codes as of one in memory."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.store.read import codes


@pytest.mark.parametrize("ids", [1, 7, 900, 3_000])
def test_codes_name_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: int):
    monkeypatch.setattr(codes, "_STEP", 100)
    texts = [f"p{number}" for number in np.random.default_rng(ids).integers(0, ids, 3_000)]
    pl.DataFrame({"id": texts}).write_parquet(tmp_path / "x.parquet", row_group_size=333)
    found = codes.coded_column(tmp_path / "x.parquet", "id")
    assert found is not None
    places, known = found
    assert known.to_pylist() == list(dict.fromkeys(texts))
    assert known.take(places).to_pylist() == texts


def test_two_ids_of_one_hash_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(codes, "_hashes", lambda texts: np.zeros(len(texts), dtype=np.uint64))
    pl.DataFrame({"id": ["a", "a", "b"]}).write_parquet(tmp_path / "x.parquet")
    assert codes.coded_column(tmp_path / "x.parquet", "id") is None
