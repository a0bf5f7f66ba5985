"""Which links others can open."""

import pytest

from core.views.link import elsewhere


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:8501/?ws=a",
        "http://LOCALHOST./",
        "http://clq.localhost/",
        "http://127.0.0.1:8501/",
        "http://127.8.9.1/",
        "http://[::1]:8501/?rev=1",
        "http://[::ffff:127.0.0.1]/",
        "http://0.0.0.0:8501/",
        "http://[::]/",
        "/?rev=2",
        "http://[",
        "",
    ],
)
def test_a_link_that_opens_here_alone_is_none(address: str):
    assert elsewhere(address) is None


@pytest.mark.parametrize(
    "address", ["https://clq.example/?rev=1", "http://clq:8501/", "http://10.1.2.3/", "http://[fd00::1]/"]
)
def test_a_link_that_others_can_open_stays(address: str):
    assert elsewhere(address) == address
