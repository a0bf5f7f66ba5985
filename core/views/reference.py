"""The measures as a Markdown table for the README, generated from the registry so that it cannot go stale."""

from __future__ import annotations

from core.metrics import reference


def measures_markdown() -> str:
    """One row per measure: name, what it says, its formula, where it is defined.

    PROC[X] and %PROC[X] are the same for every X and stand as one row each.
    """
    rows = [row for row in reference() if "PROC[" not in row["name"] or "[RA-nWG]" in row["name"]]
    lines = ["| measure | what it says | at K | better |", "|---|---|---|---|"]
    for row in rows:
        name, formula = (row[key].replace("|", "\\|") for key in ("name", "formula"))
        lines.append(f"| `{name}` | {row['text']} | {formula} | {row['better']} |")
    return "\n".join(lines)
