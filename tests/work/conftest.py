from collections.abc import Iterator

import pytest

from tests.vendors import Vendors, serve
from tests.work.golden import built


@pytest.fixture
def vendors() -> Iterator[Vendors]:
    with serve(chat=built.judge) as server:
        yield server
