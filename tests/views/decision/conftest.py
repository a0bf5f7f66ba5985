from pathlib import Path

import polars as pl
import pytest

from core.store import Store
from tests.views.made import PAPER, table


@pytest.fixture(scope="module")
def paper(published_store: Path) -> pl.DataFrame:
    return table(Store.open(published_store).read(), PAPER)
