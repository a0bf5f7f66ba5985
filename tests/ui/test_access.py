"""Who may write, by the address that a server listens at and by what a request carries."""

import pytest

from core.ui.access import from_here, why_not

BROWSER = {"host": "localhost:8501", "origin": "http://localhost:8501"}


@pytest.mark.parametrize(
    ("bound", "peer", "headers", "here"),
    [
        ("localhost", "127.0.0.1", {}, True),
        ("127.0.0.1", "::ffff:127.0.0.1", {"host": "127.0.0.1:8501"}, True),
        ("::1", "::1", {"host": "[::1]:8501", "origin": "http://[::1]:8501"}, True),
        # a network bind, whoever comes
        ("0.0.0.0", "127.0.0.1", {}, False),  # noqa: S104 - nothing is bound
        ("::", "::1", {}, False),
        (None, "127.0.0.1", {}, False),
        ("192.0.2.1", "192.0.2.1", {}, False),
        # a visitor from elsewhere, or nobody knows
        ("localhost", "192.0.2.9", {}, False),
        ("localhost", None, {}, False),
        # a proxy that leaves a mark
        ("localhost", "127.0.0.1", {"x-forwarded-for": "192.0.2.9"}, False),
        ("localhost", "127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, False),
        ("localhost", "127.0.0.1", {"x-forwarded-proto": "https"}, False),
        ("localhost", "127.0.0.1", {"forwarded": "for=192.0.2.9"}, False),
        ("localhost", "127.0.0.1", {"x-real-ip": "192.0.2.9"}, False),
        ("localhost", "127.0.0.1", {"via": "1.1 proxy"}, False),
        # one that leaves none, but passes on what the browser said
        ("localhost", "127.0.0.1", {"origin": "https://clq.example.com"}, False),
        ("localhost", "127.0.0.1", {"host": "clq.example.com"}, False),
        # another server of this machine
        ("localhost", "127.0.0.1", {"origin": "http://localhost:3000"}, False),
        ("localhost", "127.0.0.1", {"origin": "http://127.0.0.1"}, False),
        ("localhost", "127.0.0.1", {"origin": "http://localhost.example.com"}, False),
        ("localhost", "127.0.0.1", {"origin": "null"}, False),
        ("localhost", "127.0.0.1", {"origin": "http://[::1"}, False),
        ("localhost", "127.0.0.1", {"origin": ""}, False),
    ],
)
def test_who_is_here(bound: str | None, peer: str | None, headers: dict[str, str], here: bool):
    assert from_here(bound, peer, BROWSER | headers) is here


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize(
    ("setting", "locals_may", "others_may"),
    [
        (None, True, False),
        ("local", True, False),
        (" Local ", True, False),
        ("all", True, True),
        ("none", False, False),
        ("", False, False),
        ("1", False, False),
        ("yes", False, False),
    ],
)
def test_who_may_write(setting: str | None, locals_may: bool, others_may: bool, here: bool):
    assert (why_not(setting, here=here) == "") is (locals_may if here else others_may)
