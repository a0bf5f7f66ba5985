"""The output of a gate, or its refusal, in files for CI systems: JSON by schema, JUnit XML, Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

from core.bidi import escaped, strip_bidi_controls
from core.decide.selection import DECIDED_BY
from core.errors import ClqError, NothingKnownError, refusal
from core.files import try_out, write_out
from core.records import JsonMap
from core.report.files import pinned_link
from core.report.gate import Held
from core.report.gate_blocks import gate_blocks
from core.report.page import as_text, block_data, made_of, workspace_data
from core.report.staying import stays
from core.views.link import elsewhere

FORMAT = "clq-explorer/gate"
VERSION = 1
"""Version of the JSON described in `gate.schema.json`: increases if a field changes meaning or is removed."""
CODES: Mapping[str, int] = dict.fromkeys(("worse", "pgs", "another", "dominated", "switch", "retires"), 4) | {
    "": 0,
    "limit": 5,
    "gone": 6,
    "unknown": 7,
    "elsewhere": 8,
    "refused": 1,
}
"""Exit code by the first cause; 2 is wrong usage."""
CHECKS: Mapping[str, str] = {
    "elsewhere": "the newest results of the stack, and those that were given, are what is judged",
    "gone": "the chosen stack is in the workspace",
    "limit": "it is within the limits",
    "unknown": "what the limits ask for is known of it, or waived",
    "worse": "it is not surely worse than what the rule chooses by more than does not matter",
    "pgs": "its probability of good selection is what is asked for",
    "retires": "no model of the stack that runs has ended, and no end was announced since",
    "switch": "the rule says to stay with the stack that runs",
    "dominated": "no stack is as good in everything and better in something",
    "another": "no other stack would be chosen with a large probability",
}
"""What is checked, by the cause of failure, in order."""
OLD, NEW = ("dominated", "another"), ("worse", "pgs")
"""Checks made only by the rule until 0.2, and only by the current one."""
CHECKED = {"elsewhere", "gone", "limit", "unknown"}
STAYING = CHECKED | {"retires", "switch"}
"""Checks of a decision to stay with the stack that runs; those of `CHECKED` are made of every record."""
_NO_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Files:
    """The files that a gate writes; None = not this one."""

    record: str  # name of the record's file
    dashboard: str  # URL of the dashboard
    junit: Path | None = None
    markdown: Path | None = None
    json: Path | None = None

    def try_out(self) -> None:
        """Refuse a file that cannot be written, before anything is computed."""
        for path in (self.junit, self.markdown, self.json):
            if path is not None:
                try_out(path)

    def write(self, held: Held) -> JsonMap:
        """Write what a gate found; return it as plain data."""
        said = as_data(held, dashboard=self.dashboard)
        self._write(said, as_junit(held, self.record), as_markdown(held, dashboard=self.dashboard))
        return said

    def refuse(self, error: BaseException) -> None:
        """Write that a gate could not decide, and why, replacing the findings of an earlier run."""
        words = error if isinstance(error, ClqError) else refusal(error)
        sentence = str(words or f"It stopped: {type(error).__name__}.")
        cause = "unknown" if isinstance(error, NothingKnownError) else "refused"
        markdown = as_text("md", (), kind="Decision gate: refused", sentence=sentence, made=f"{self.record}.")
        self._write(_refused(sentence, cause), _junit_refused(self.record, sentence, cause), markdown)

    def _write(self, data: JsonMap, junit: str, markdown: str) -> None:
        failed = None
        for path, text in ((self.junit, junit), (self.markdown, markdown), (self.json, f"{as_json(data)}\n")):
            try:
                if path is not None:
                    write_out(path, text)
            except ClqError as error:  # the other files are written all the same
                failed = error
        if failed is not None:
            raise failed


def as_json(data: JsonMap) -> str:
    """Return plain data as indented JSON."""
    return escaped(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False))


def _refused(sentence: str, cause: str) -> JsonMap:
    """Return a refusal as plain data: nothing holds, and nothing is known about any workspace."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "holds": False,
        "cause": cause,
        "exit_code": CODES[cause],
        "stack": "",
        "sentence": sentence,
        "share": 0.0,
        "link": "",
        "workspace": {},
        "findings": [],
        "changes": [],
        "blocks": [],
    }


def _junit_refused(name: str, sentence: str, cause: str) -> str:
    """Render a refusal as JUnit XML: one test case, with an error."""
    suites = Xml.Element("testsuites")
    suite = _suite(suites, name, tests=1, errors=1)
    case = Xml.SubElement(suite, "testcase", classname=_plain(name), name="the gate can decide")
    Xml.SubElement(case, "error", type=cause, message=_plain(sentence))
    return _xml(suites)


def as_data(held: Held, *, dashboard: str) -> JsonMap:
    """Return a gate's findings as plain data; see `gate.schema.json`."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "holds": held.holds,
        "cause": held.cause or None,
        "exit_code": CODES[held.cause],
        "stack": held.was.chosen.stack,
        "sentence": held.sentence,
        "share": held.share,
        "least_pgs": held.least_pgs,
        "waived": [axis.limit for axis in held.waived],
        "results": held.given and {"into": held.given.into, "sentence": held.given.sentence},
        "link": pinned_link(held.view, dashboard),
        "workspace": workspace_data(held.view),
        "findings": held.findings.to_dicts(),
        "changes": held.changes.to_dicts(),
        "blocks": [block_data(block) for block in gate_blocks(held)],
    }


def as_markdown(held: Held, *, dashboard: str) -> str:
    """Render a gate's findings for a step's summary or a comment; others' texts in it are not markup."""
    kind = f"Decision gate: {'holds' if held.holds else 'no longer holds'}"
    return as_text(
        "md",
        tuple(gate_blocks(held)),
        kind=kind,
        sentence=held.sentence,
        made=made_of(held.view),
        link=elsewhere(pinned_link(held.view, dashboard)) or "",
    )


def as_junit(held: Held, name: str) -> str:
    """Render a gate's findings as JUnit XML: a test case per check, failed ones with before, now and why.

    Args:
        name: Name of the record, for the suite.
    """
    findings = {row["check"]: row for row in held.findings.to_dicts()}
    others = {*(OLD if held.was.decided_by >= DECIDED_BY else NEW)}
    others |= CHECKS.keys() - STAYING if stays(held.was.data) else STAYING - CHECKED
    checks = {check: words for check, words in CHECKS.items() if check not in others}
    suites = Xml.Element("testsuites")
    suite = _suite(suites, name, tests=len(checks), failures=len(findings))
    for check, words in checks.items():
        case = Xml.SubElement(suite, "testcase", classname=_plain(name), name=_plain(words))
        if row := findings.get(check):
            failure = Xml.SubElement(case, "failure", type=check, message=_plain(row["reason"]))
            failure.text = _plain(f"was: {row['was']}\nnow: {row['now']}")
    Xml.SubElement(suite, "system-out").text = _plain(held.sentence)
    return _xml(suites)


def _suite(suites: Xml.Element, name: str, *, tests: int, failures: int = 0, errors: int = 0) -> Xml.Element:
    counts = {"tests": tests, "failures": failures, "errors": errors, "skipped": 0}
    counted = {kind: str(number) for kind, number in counts.items()}
    return Xml.SubElement(suites, "testsuite", {"name": _plain(f"clq gate {name}"), **counted})


def _xml(suites: Xml.Element) -> str:
    return Xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    """Remove from others' text characters that XML cannot hold, and those that reverse the text direction."""
    return _NO_XML.sub("\ufffd", strip_bidi_controls(text))
