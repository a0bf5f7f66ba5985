"""Chunkers: documents in, passages out, each with the exact characters of its document that it covers.

`chunk` cuts the documents of a collection. The passages are those of its part "<collection>@<name>", and the
chunks say where each lies, which is what grades anchored to characters are derived from
(`core.pipeline.anchors`). A chunker is a method with parameters, ``{"method": "sentence", "size": 200}``;
`canonical` adds the defaults and `chunking_name` names the result.
"""

from core.pipeline.chunk.methods import CHUNKERS, canonical, chunking_name, is_late
from core.pipeline.chunk.run import Chunked, chunk, late_vectors, vectors_of

__all__ = [
    "CHUNKERS",
    "Chunked",
    "canonical",
    "chunk",
    "chunking_name",
    "is_late",
    "late_vectors",
    "vectors_of",
]
