"""The vendors' server, in a thread of the test session."""

from collections.abc import Iterator

import pytest

from tests.vendors import Vendors, serve


@pytest.fixture(scope="session")
def vendor_server() -> Iterator[Vendors]:
    with serve() as server:
        yield server


@pytest.fixture
def vendors(vendor_server: Vendors) -> Iterator[Vendors]:
    """As if it had just been started."""
    vendor_server.state.reset()
    yield vendor_server
    vendor_server.state.reset()
