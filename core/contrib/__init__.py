"""What few need: loaded like the plug-ins of other packages, by the entry points that stand here."""

from collections.abc import Mapping

ENTRY_POINTS: Mapping[str, Mapping[str, str]] = {}
"""Group of entry points to name and place, as `[project.entry-points]` of a package has them."""
