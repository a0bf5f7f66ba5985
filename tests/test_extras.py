"""Packages that need not be installed."""

import sys

import pytest

from core.errors import ClqError
from core.extras import installed, needed


def test_a_package_that_is_there_is_returned() -> None:
    assert needed("json", "requirements-ray.txt").dumps([1]) == "[1]"
    assert installed("json")


@pytest.mark.parametrize("package", ["optuna", "ray.util", "no_such_package"])
def test_without_it_the_error_names_the_command(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package.partition(".")[0], None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ClqError) as caught:
        needed(package, "requirements-ray.txt", "A search")
    assert caught.value.found == f"A search needs the package {package.partition('.')[0]}."
    assert caught.value.do == "Install it: pip install -r requirements-ray.txt"
