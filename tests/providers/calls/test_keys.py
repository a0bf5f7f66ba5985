import logging
import pickle
from pathlib import Path

import pytest

from core.errors import ProviderError
from core.providers.calls import Keys, Secret, redact

KEY = "pa-0123456789abcdefSECRET"


def test_the_environment_comes_before_the_files(tmp_path: Path):
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('VOYAGE_API_KEY = "from-first"\nCOUNT = 3\n')
    second.write_text('VOYAGE_API_KEY = "from-second"\nCOHERE_API_KEY = " from-second "\n')
    files = (tmp_path / "missing.toml", first, second)
    assert Keys({"VOYAGE_API_KEY": "from-env"}, files).need("VOYAGE_API_KEY", "m").reveal() == "from-env"
    keys = Keys({"VOYAGE_API_KEY": ""}, files)
    assert keys.need("VOYAGE_API_KEY", "m").reveal() == "from-first"
    assert keys.need("COHERE_API_KEY", "m").reveal() == "from-second"
    assert keys.find("COUNT") is keys.find("OTHER") is None


def test_the_other_name_of_a_key_is_found():
    assert Keys({"CO_API_KEY": "abcdef"}, ()).need("COHERE_API_KEY", "m").reveal() == "abcdef"


def test_a_missing_key_names_the_variable():
    with pytest.raises(ProviderError, match=r"no key for voyage-3.5.*variable VOYAGE_API_KEY") as raised:
        Keys({}, ()).need("VOYAGE_API_KEY", "voyage-3.5")
    assert raised.value.kind == "auth"


@pytest.mark.parametrize("value", ["two words-of-key", "naïve-key-of-mine", "line\nbreak-of-key"])
def test_a_key_that_no_header_can_hold(value: str):
    with pytest.raises(ProviderError, match="SOME_KEY") as raised:
        Keys({"SOME_KEY": value}, ()).find("SOME_KEY")
    assert value not in str(raised.value)


@pytest.mark.parametrize("text", [f"SOME_KEY = {KEY}", b"\xff\xfe".decode("latin-1")])
def test_a_secrets_file_that_cannot_be_read_does_not_tell(tmp_path: Path, text: str):
    path = tmp_path / "secrets.toml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ProviderError) as raised:
        Keys({}, (path,)).find("SOME_KEY")
    assert raised.value.where == str(path)
    assert KEY not in str(raised.value)


def test_a_secret_does_not_show_itself(caplog: pytest.LogCaptureFixture):
    secret = Secret("SOME_KEY", KEY)
    logging.getLogger("test").warning("%s %r %s", secret, secret, {"key": secret})
    assert KEY not in f"{secret} {secret!r} {[secret]} {caplog.text}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"the key {KEY} is wrong", "the key [hidden] is wrong"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [hidden]"),
        ("Incorrect API key provided: sk-proj-ab**cd12", "Incorrect API key provided: [hidden]"),
        ("api_key=hunter2hunter2 x", "api_key[hidden] x"),
        ("{'x-api-key': 'hunter2hunter2'}", "{'x-api-key[hidden]'}"),
        ("https://user:pass@host/v1", "https://[hidden]@host/v1"),
        ("task-oriented dialogue, pa-1, a co-operative", "task-oriented dialogue, pa-1, a co-operative"),
        ("", ""),
    ],
)
def test_redaction(text: str, left: str):
    Secret("SOME_KEY", KEY)
    assert redact(text) == left
