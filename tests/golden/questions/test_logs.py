"""Real questions of a log: merged, masked, drawn from head and tail."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import InputError
from core.golden.questions.logs import HEAD, TAIL, masked, read_log, strata
from core.golden.questions.spec import LogSource
from core.pipeline.index.terms import Analyzer

ENGLISH = Analyzer("english")


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
    ],
)
def test_personal_data_is_masked(said: str, shown: str):
    assert masked(said) == (shown, int(said != shown))


def test_copies_are_merged_with_their_frequency(tmp_path: Path):
    log = tmp_path / "log.csv"
    asked = (
        ["how do I return a parcel"] * 5
        + ["How do I return parcels"] * 2
        + ["write to a@b.io"]
        + [f"rare thing{at} number{at} with several further words{at}" for at in range(8)]
    )
    log.write_text("\n".join(["when,query", *(f"1,{text}" for text in asked)]))
    found = read_log(LogSource(path=log), None, ENGLISH)
    assert found.questions[0] == ("how do I return a parcel", 7)
    assert (found.rows, found.masked) == (16, 1)
    assert any(text == "write to [email]" for text, _ in found.questions)
    drawn = strata(found, 4, ENGLISH, "s")
    assert {draft.part for draft in drawn} == {HEAD, TAIL}
    assert drawn == strata(found, 4, ENGLISH, "s")


def test_frequencies_of_a_table_count(tmp_path: Path):
    log = tmp_path / "log.csv"
    log.write_text("question,count\nreturn a parcel,90\nislands,10\n")
    assert read_log(LogSource(path=log), None, ENGLISH).questions == (
        ("return a parcel", 90),
        ("islands", 10),
    )


def test_a_log_without_the_column_is_refused(tmp_path: Path):
    log = tmp_path / "log.csv"
    log.write_text("when,what\n1,x\n")
    with pytest.raises(InputError, match="column"):
        read_log(LogSource(path=log), None, ENGLISH)
    log.write_text("query,when\n,1\n")
    with pytest.raises(InputError, match="no questions"):
        read_log(LogSource(path=log), None, ENGLISH)
