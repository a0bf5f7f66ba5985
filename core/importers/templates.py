"""Tables to fill in, one for each kind of row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.importers.meaning import RowMeaning


@dataclass(frozen=True, slots=True)
class Template:
    """A table to fill in: its file name, its purpose, and its text."""

    file: str
    title: str
    text: str


TEMPLATES: Mapping[RowMeaning | Literal["nugget"], Template] = {
    "stack": Template(
        "stacks.csv",
        "One row per stack: quality, latency, price",
        """\
stack,nDCG@10,latency_p50_ms,latency_p95_ms,usd_per_1k
hybrid + rerank,0.47,340,700,1.90
dense,0.44,90,160,0.20
bm25,0.41,12,25,0.00
""",
    ),
    "query": Template(
        "queries.csv",
        "One row per query: latency, tokens, answer",
        """\
stack,query_id,latency_ms,rerank_input_tokens,rerank_model,answer,k,grade,scale
hybrid + rerank,q1,331,25000,rerank-2.5,Within 30 days of delivery.,10,1,0-1
hybrid + rerank,q2,349,24100,rerank-2.5,Only with the receipt.,10,0.5,0-1
bm25 + rerank,q1,210,25300,rerank-2.5,Within 14 days.,10,0,0-1
bm25 + rerank,q2,198,24700,rerank-2.5,Only with the receipt.,10,0.5,0-1
""",
    ),
    "passage": Template(
        "rankings.csv",
        "One row per ranked passage",
        """\
stack,query_id,passage_id,rank,score
dense,q1,returns-3,1,0.83
dense,q1,returns-1,2,0.79
dense,q2,receipts-2,1,0.91
bm25,q1,returns-1,1,14.2
bm25,q1,shipping-4,2,9.7
bm25,q2,receipts-2,1,17.5
""",
    ),
    "nugget": Template(
        "nuggets.csv",
        "One row per fact of a good answer and passage",
        """\
query_id,nugget,importance,passage_id,support
q1,Parcels can be returned within 30 days.,vital,returns-1,support
q1,Parcels can be returned within 30 days.,vital,returns-3,partial_support
q1,The return is free of charge.,okay,returns-3,support
q2,A receipt is needed.,vital,receipts-2,support
""",
    ),
}
"""Kind of row → the template of its table."""
