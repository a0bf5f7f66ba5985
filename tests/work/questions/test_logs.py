"""Real questions of a log: merged, masked, drawn from head and tail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.errors import InputError
from core.pipeline.index.terms import Analyzer
from core.work.questions.logs import HEAD, TAIL, read_log, strata
from core.work.questions.spec import LogSource

ENGLISH = Analyzer("english")


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
    log.write_text("query_text,count\nreturn a parcel,90\nislands,10\n")
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


def test_topics_come_in_turn_within_a_part(tmp_path: Path):
    log = tmp_path / "log.csv"
    kinds = (("parcel", 6), ("invoice", 2))
    asked = [f"{thing}{at} lost{at} again{at}" for thing, often in kinds for at in range(often)]
    log.write_text("\n".join(["query", *asked]))
    found = read_log(LogSource(path=log), None, ENGLISH)
    topics = np.array([int("invoice" in text) for text, _ in found.questions])
    drawn = [draft for draft in strata(found, 8, ENGLISH, "s", topics) if draft.part == TAIL]
    both = [int("invoice" in draft.text) for draft in drawn]
    assert both[:2] in ([0, 1], [1, 0])
    assert len(strata(found, 99, ENGLISH, "s", topics)) == len(asked)


def test_masked_questions_are_counted(tmp_path: Path):
    (tmp_path / "log.csv").write_text("query\nparcel of Marie Dupont\nrefund\n")
    (tmp_path / "names.txt").write_text("Marie Dupont\n\nCase 12/B\n")
    found = read_log(LogSource(path=tmp_path / "log.csv", mask=tmp_path / "names.txt"), None, ENGLISH)
    assert dict(found.questions) == {"parcel of [hidden]": 1, "refund": 1}
    assert found.masked == 1


@pytest.mark.parametrize(
    "content", ["query\nreturns\nislands\n", "returns\nislands", '\ufeff"returns"\r\n"islands"\r\n']
)
def test_a_file_of_one_column_is_a_question_a_line(tmp_path: Path, content: str):
    (tmp_path / "log.csv").write_text(content)
    assert read_log(LogSource(path=tmp_path / "log.csv"), None, ENGLISH).questions == (
        ("returns", 1),
        ("islands", 1),
    )
    (tmp_path / "log.txt").write_bytes(b"\x00\xff")
    with pytest.raises(InputError):
        read_log(LogSource(path=tmp_path / "log.txt"), None, ENGLISH)
