from collections.abc import Iterator

import pytest

from tests.golden import built
from tests.vendors import Vendors, serve


@pytest.fixture
def vendors() -> Iterator[Vendors]:
    with serve(chat=built.judge) as server:
        yield server
