"""The decision record as JSON: `core.report.data` as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping

from core.bidi import escaped


def record_json(data: Mapping[str, object]) -> str:
    """Write a record's data."""
    return escaped(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"
