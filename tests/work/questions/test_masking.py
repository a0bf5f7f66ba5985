"""Personal data in what people asked: by pattern, by a list, by a model of names."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ClqError, InputError
from core.work.questions.masking import ListedNames, by_patterns, mask


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("refund for ada.l@example.co.uk please", "refund for [email] please"),
        ("carte 4111 1111 1111 1111 refusée", "carte [card] refusée"),
        ("order 4111 1111 1111 1112", "order 4111 1111 1111 1112"),
        ("rappelez le 06 12 34 56 78", "rappelez le [phone]"),
        ("call +33 6 12 34 56 78 now", "call [phone] now"),
        ("call (415) 555-0132", "call [phone]"),
        ("blocked from 192.168.10.7 why", "blocked from [ip] why"),
        ("FR76 3000 6000 0112 3456 7890 189 virement", "[iban] virement"),
        ("version 1.2.3.4.5 of 2024-05-01", "version 1.2.3.4.5 of 2024-05-01"),
        ("error 404 in 2023", "error 404 in 2023"),
        ("deliver to 221B Baker Street today", "deliver to [address] today"),
        ("parcel for 10 downing street", "parcel for [address]"),
        ("the 3 best walks in a street market", "the 3 best walks in a street market"),
        ("2 lane road rules", "2 lane road rules"),
        ("livrer au 12 bis, rue de la Paix 75002", "livrer au [address] 75002"),
        ("3 place de parking", "3 place de parking"),
        ("5 place de la République svp", "[address] svp"),
        ("avant 350 av. J.-C.", "avant 350 av. J.-C."),
        ("Paket an Bahnhofstraße 12a", "Paket an [address]"),
    ],
)
def test_personal_data_is_masked(said: str, shown: str):
    assert by_patterns(said) == (shown, int(said != shown))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("refund for Ada Lovelace", "refund for [hidden]"),
        ("ada  LOVELACE's parcel", "[hidden]'s parcel"),
        ("the Adas of Lovelacetown", "the Adas of Lovelacetown"),
        ("Ada and Ada King", "[hidden] and [hidden]"),
        ("colis de José", "colis de [hidden]"),
    ],
)
def test_what_a_list_names_is_masked(tmp_path: Path, said: str, shown: str):
    names = tmp_path / "names.txt"
    names.write_text("\ufeffAda\nAda Lovelace\nada king\n\nJosé\n")
    assert mask([said], listed=names)[0] == [shown]


@pytest.mark.parametrize(
    ("content", "says"), [(None, "cannot be read"), (b"\xff\xfe\x00", "cannot be read"), (b" \n", "empty")]
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, content: bytes | None, says: str):
    names = tmp_path / "names.txt"
    if content is not None:
        names.write_bytes(content)
    with pytest.raises(InputError, match=says):
        ListedNames.read(names)


@pytest.mark.extras
def test_a_model_finds_names_of_people_alone(tmp_path: Path):
    spacy = pytest.importorskip("spacy")
    reader = spacy.blank("en")
    ruler = reader.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": "Ada Lovelace"}, {"label": "GPE", "pattern": "Lyon"}])
    reader.to_disk(tmp_path / "model")
    asked = ["Does Ada Lovelace live in Lyon?", "mail ada@example.org"]
    said, count = mask(asked, names=str(tmp_path / "model"))
    assert said == ["Does [name] live in Lyon?", "mail [email]"]
    assert count == 2
    with pytest.raises(InputError, match="No model of spaCy"):
        mask(asked, names="no_such_model")


def test_without_spacy_a_model_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "spacy", None)
    with pytest.raises(ClqError, match="requirements-names"):
        mask(["x"], names="en_core_web_sm")
