"""Importers, one file per format, that turn foreign formats into batches of records.

`load` reads everything that a user offers as one `Import`; `preview` only looks. Nothing here writes to a
store: the caller adds ``Import.batch`` within one transaction, or does not, which is a dry run.
"""

from core.importers.base import Import, LeftOut, Options
from core.importers.formats import FORMATS
from core.importers.formats.own import export
from core.importers.formats.table import recognised, stacks_of
from core.importers.judgements import GRADE_MAPPINGS, mapping_text
from core.importers.load import Preview, load, preview
from core.importers.meaning import RowMeaning, TableAs
from core.importers.naming import ROLES, NamedValue, named
from core.importers.read.member import ReadLimits, ReadProgress
from core.importers.read.source import Offered, Upload
from core.importers.templates import TEMPLATES

__all__ = [
    "FORMATS",
    "GRADE_MAPPINGS",
    "ROLES",
    "TEMPLATES",
    "Import",
    "LeftOut",
    "NamedValue",
    "Offered",
    "Options",
    "Preview",
    "ReadLimits",
    "ReadProgress",
    "RowMeaning",
    "TableAs",
    "Upload",
    "export",
    "load",
    "mapping_text",
    "named",
    "preview",
    "recognised",
    "stacks_of",
]
