"""The output of a gate in files for CI systems: JSON by schema, JUnit XML, Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as Xml

from core.bidi import strip_bidi_controls
from core.decide.selection import DECIDED_BY
from core.records import JsonMap
from core.report.files import pinned_link
from core.report.gate import Held
from core.report.gate_blocks import gate_blocks
from core.report.page import as_text, block_data, made_of, workspace_data
from core.views.link import elsewhere

FORMAT = "clq-explorer/gate"
VERSION = 1
"""Version of the JSON described in `gate.schema.json`: increases if a field changes meaning or is removed."""
CODES: Mapping[str, int] = dict.fromkeys(("worse", "pgs", "another", "dominated"), 4) | {
    "": 0,
    "limit": 5,
    "gone": 6,
    "unknown": 7,
}
"""Exit code by the first cause; 1 is refused input, 2 wrong usage."""
CHECKS: Mapping[str, str] = {
    "gone": "the chosen stack is in the workspace",
    "limit": "it is within the limits",
    "unknown": "what the limits ask for is known of it, or waived",
    "worse": "it is not surely worse than what the rule chooses by more than does not matter",
    "pgs": "its probability of good selection is what is asked for",
    "dominated": "no stack is as good in everything and better in something",
    "another": "no other stack would be chosen with a large probability",
}
"""What is checked, by the cause of its failing, in order."""
OLD, NEW = ("dominated", "another"), ("worse", "pgs")
"""Checks made only by the rule until 0.2, and only by the current one."""
_NO_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_data(held: Held, *, dashboard: str) -> JsonMap:
    """Return it as plain data; see `gate.schema.json`."""
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
        "link": pinned_link(held.view, dashboard),
        "workspace": workspace_data(held.view),
        "findings": held.findings.to_dicts(),
        "changes": held.changes.to_dicts(),
        "blocks": [block_data(block) for block in gate_blocks(held)],
    }


def as_markdown(held: Held, *, dashboard: str) -> str:
    """Render it for a step's summary or a comment; others' texts in it aren't markup."""
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
    """Render it as JUnit XML: a test case per check, failed ones with before, now and why.

    Args:
        name: Name of the record, for the suite.
    """
    findings = {row["check"]: row for row in held.findings.to_dicts()}
    others = OLD if held.was.decided_by >= DECIDED_BY else NEW
    checks = {check: words for check, words in CHECKS.items() if check not in others}
    suite = Xml.Element("testsuite", name=_plain(f"clq gate {name}"), tests=str(len(checks)),
                        failures=str(len(findings)), errors="0", skipped="0")  # fmt: skip
    for check, words in checks.items():
        case = Xml.SubElement(suite, "testcase", classname=_plain(name), name=_plain(words))
        if row := findings.get(check):
            failure = Xml.SubElement(case, "failure", type=check, message=_plain(row["reason"]))
            failure.text = _plain(f"was: {row['was']}\nnow: {row['now']}")
    Xml.SubElement(suite, "system-out").text = _plain(held.sentence)
    suites = Xml.Element("testsuites")
    suites.append(suite)
    return Xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    """Remove from others' text characters that XML cannot hold, and those that reverse the text direction."""
    return _NO_XML.sub("\ufffd", strip_bidi_controls(text))
