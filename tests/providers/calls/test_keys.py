import json
import logging
import pickle
from pathlib import Path

import pytest

from core.errors import InputError, ProviderError
from core.providers.calls import Keys, Secret, redact
from core.providers.calls.keys import ALLOW
from core.providers.config import VENDORS

KEY = "pa-0123456789abcdefSECRET"


VOYAGE, COHERE = VENDORS["voyage"].url, VENDORS["cohere"].url
OWN = "https://models.example.com/v1"


def allowed(name: str, to: str = OWN) -> dict[str, str]:
    return {ALLOW: f"{name}={to}"}


def test_the_environment_comes_before_the_files(tmp_path: Path):
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('VOYAGE_API_KEY = "from-first"\nCOUNT = 3\n')
    second.write_text('VOYAGE_API_KEY = "from-second"\nCOHERE_API_KEY = " from-second "\n')
    files = (tmp_path / "missing.toml", first, second)
    given = Keys({"VOYAGE_API_KEY": "from-env"}, files)
    assert given.need("VOYAGE_API_KEY", "m", VOYAGE).reveal() == "from-env"
    keys = Keys({"VOYAGE_API_KEY": "", ALLOW: f"COUNT={OWN} OTHER={OWN}"}, files)
    assert keys.need("VOYAGE_API_KEY", "m", VOYAGE).reveal() == "from-first"
    assert keys.need("COHERE_API_KEY", "m", COHERE).reveal() == "from-second"
    assert keys.find("COUNT", OWN) is keys.find("OTHER", OWN) is None


def test_the_other_name_of_a_key_is_found():
    for name in ("COHERE_API_KEY", "CO_API_KEY"):
        assert Keys({"CO_API_KEY": "abcdef"}, ()).need(name, "m", COHERE).reveal() == "abcdef"


def test_a_missing_key_names_the_variable():
    with pytest.raises(ProviderError, match=r"no key for voyage-3.5.*variable VOYAGE_API_KEY") as raised:
        Keys({}, ()).need("VOYAGE_API_KEY", "voyage-3.5", VOYAGE)
    assert raised.value.kind == "auth"


class Untouched(dict[str, str]):
    """An environment that tells which names were read."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(given)
        self.read: set[str] = set()

    def get(self, name: str, default: object = None) -> str | None:  # type: ignore[override]
        self.read.add(name)
        return super().get(name)


MINE = {"MY_KEY": "mine-mine", "VOYAGE_API_KEY": "voyages", "PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "aws"}
PAIRS = [
    # key_env, base_url, what the operator wrote, who allows it
    ("VOYAGE_API_KEY", VOYAGE, "", "vendor"),
    ("VOYAGE_API_KEY", "https://API.voyageai.com:443/v2/other", "", "vendor"),
    ("VOYAGE_API_KEY", "http://api.voyageai.com/v1", "", ""),
    ("VOYAGE_API_KEY", "https://api.voyageai.com:8443/v1", "", ""),
    ("VOYAGE_API_KEY", "https://api.voyageai.com.evil.example/v1", "", ""),
    ("VOYAGE_API_KEY", "https://api.voyageai.com@evil.example/v1", "", ""),
    ("VOYAGE_API_KEY", "https://evil.example\\@api.voyageai.com/v1", "", ""),
    ("VOYAGE_API_KEY", "https://evil.example/?api.voyageai.com", "", ""),
    ("VOYAGE_API_KEY", "https://api.voyageai.com%2eevil.example/v1", "", ""),
    ("VOYAGE_API_KEY", "https://api.voyageаi.com/v1", "", ""),
    ("VOYAGE_API_KEY", COHERE, "", ""),
    ("VOYAGE_API_KEY", OWN, "", ""),
    ("VOYAGE_API_KEY", OWN, f"MY_KEY={OWN}", ""),
    ("VOYAGE_API_KEY", OWN, f"VOYAGE_API_KEY={OWN}", "operator"),
    ("MY_KEY", OWN, "", ""),
    ("MY_KEY", OWN, f"MY_KEY={OWN}", "operator"),
    ("MY_KEY", OWN, "MY_KEY=https://models.example.com", "operator"),
    ("MY_KEY", OWN, f"OTHER=http://localhost:1\n  MY_KEY={OWN}", "operator"),
    ("MY_KEY", OWN, "MY_KEY=http://models.example.com", ""),
    ("MY_KEY", OWN, "MY_KEY=https://models.example.com:8443", ""),
    ("MY_KEY", VOYAGE, f"MY_KEY={OWN}", ""),
    ("PATH", VOYAGE, "", ""),
    ("AWS_SECRET_ACCESS_KEY", OWN, "", ""),
    ("AWS_SECRET_ACCESS_KEY", OWN, f"MY_KEY={OWN}", ""),
    (ALLOW, OWN, f"MY_KEY={OWN}", ""),
    ("", OWN, f"MY_KEY={OWN}", ""),
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("place", ["environment", "secrets"])
def test_a_key_goes_where_it_belongs_or_its_operator_says(
    tmp_path: Path, place: str, pair: tuple[str, str, str, str]
):
    name, url, said, by = pair
    environment, secrets = Untouched(dict(MINE)), tmp_path / "secrets.toml"
    if place == "environment":
        environment[ALLOW] = said
    else:
        secrets.write_text(f"{ALLOW} = {json.dumps(said)}\n")
    keys = Keys(environment, (secrets,))
    assert keys.allowed_by(name, url) == by
    if by:
        assert keys.need(name, "m", url).reveal() == MINE[name]
        return
    with pytest.raises(InputError, match="may not be sent to") as raised:
        keys.need(name, "m", url)
    assert environment.read <= {ALLOW}, "a name that is not allowed is not read"
    assert not any(value in str(raised.value) for value in MINE.values() if value != "/bin")


@pytest.mark.parametrize(
    "said", ["MY_KEY", "=https://a.example", "MY_KEY=*", "MY_KEY=a.example", "A=ftp://b"]
)
def test_what_the_operator_wrote_has_to_make_sense(said: str):
    with pytest.raises(ProviderError, match="NAME=ADDRESS") as raised:
        Keys({"MY_KEY": KEY, ALLOW: said}, ()).need("MY_KEY", "m", OWN)
    assert raised.value.kind == "refused"


@pytest.mark.parametrize("value", ["two words-of-key", "naïve-key-of-mine", "line\nbreak-of-key"])
def test_a_key_that_no_header_can_hold(value: str):
    with pytest.raises(ProviderError, match="SOME_KEY") as raised:
        Keys({"SOME_KEY": value, **allowed("SOME_KEY")}, ()).find("SOME_KEY", OWN)
    assert value not in str(raised.value)


@pytest.mark.parametrize("text", [f"SOME_KEY = {KEY}", b"\xff\xfe".decode("latin-1")])
def test_a_secrets_file_that_cannot_be_read_does_not_tell(tmp_path: Path, text: str):
    path = tmp_path / "secrets.toml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ProviderError) as raised:
        Keys(allowed("SOME_KEY"), (path,)).find("SOME_KEY", OWN)
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
