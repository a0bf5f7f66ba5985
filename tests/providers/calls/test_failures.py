"""What the real clients cannot be made to raise; see tests/providers/test_vendors.py for what they do."""

import pytest

from core.providers.calls import failure


class ApiError(Exception):
    def __init__(self, status: object, body: object = None, code: object = None) -> None:
        super().__init__("headers: {'authorization': 'Bearer abcdefgh'}")
        self.status_code, self.body, self.code = status, body, code


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ApiError(429, {"error": {"message": "You exceeded your current quota"}}), "quota", "You exceeded"),
        (ApiError(429, {"message": "slow down"}, code="insufficient_quota"), "quota", "slow down"),
        (ApiError(429, None), "busy", "ApiError"),
        (ApiError(408, ""), "busy", "ApiError"),
        (ApiError(400, "too many tokens in the batch: the limit is 10"), "too large", "too many tokens"),
        (ApiError(400, {"detail": "unknown token parameter"}), "refused", "unknown token"),
        (ApiError(422, {"detail": [{"loc": ["x"]}]}), "refused", "[{'loc': ['x']}]"),
        (ApiError(200, "<html>\nhello"), "unreadable", "ApiError: <html> hello"),
        (ApiError(529, b"\x00"), "server", "ApiError"),
        (ApiError(None, None), "unreadable", "ApiError: headers: {'authorization': 'Bearer [hidden]"),
        (TimeoutError("read"), "timeout", "read"),
        (ConnectionAbortedError("gone"), "unreachable", "gone"),
        (AttributeError("usage"), "unreadable", "AttributeError: usage"),
    ],
)
def test_what_an_exception_means(error: Exception, kind: str, text: str):
    found = failure(error, 0.0)
    assert found.kind == kind
    assert found.text.startswith(text)
    assert "abcdefgh" not in found.text


def test_a_long_answer_is_cut():
    assert len(failure(ApiError(400, "x" * 10_000), 0.0).text) == 300


def test_the_chain_of_causes_is_read_once_around():
    outer, inner = RuntimeError("outer"), ConnectionRefusedError("inner")
    outer.__cause__, inner.__cause__ = inner, outer
    found = failure(outer, 0.0)
    assert (found.kind, found.sent) == ("unreachable", False)
