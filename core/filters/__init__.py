"""Filters: which passages the asker of a query may see, as one small JSON language.

A query carries a filter, such as ``{"tenant": "a", "lang": ["en", "de"], "acl": {"any": ["group:sales"]}}``,
and passages carry metadata. This package reads both, and knows neither files nor stores::

    fields = fields_of(metadata)             # one row per passage, one typed column per field
    kinds(fields)                            # {"tenant": Kind.TEXT, "date": Kind.DATE, …}
    asked = parse(text_of_the_column)        # hashable; asked.text is its canonical JSON
    asked.check(fields)                      # refuses a field that no passage has, or a value of another type
    allowed = asked.mask(fields)             # bool array, one per row of `fields`
    share_of(allowed), decade(share)         # selectivity, and its bin

Measures compare rankings with `mask`. An engine that filters itself translates `Filter.parts`: a tuple of
`Condition` and `Not`, all of which hold. `Condition.values_as(kind)` are the values in the field's own type,
None where it never holds; every field of `Filter.names` has to be there, also under `not`. What an engine
returns is to equal `mask`, which is exact.

A passage that lacks a field of the filter, or holds a value of another type there, never matches, not even
under `not`: permissions fail closed.
"""

from core.filters.fields import Kind, decoded, fields_of, kinds
from core.filters.language import RANGES, Condition, Filter, Not, Value, parse
from core.filters.selectivity import DECADES, decade, share_of

__all__ = [
    "DECADES",
    "RANGES",
    "Condition",
    "Filter",
    "Kind",
    "Not",
    "Value",
    "decade",
    "decoded",
    "fields_of",
    "kinds",
    "parse",
    "share_of",
]
