"""Documents in: files of text, Markdown, HTML and PDF, or tables and BEIR collections, as one frame.

What is cut into chunks later, and what spans of golden sets are anchored to. Offsets count characters (code
points) of the text as it stands in the frame: for .txt and .md that is the file decoded, with LF line ends
and without a byte order mark; for .html the visible text, one blank line between blocks; for .pdf the text of
the pages, one blank line between them.
"""

from core.pipeline.documents.base import SCHEMA, Documents, documents_frame
from core.pipeline.documents.read import FORMATS, read_documents

__all__ = ["FORMATS", "SCHEMA", "Documents", "documents_frame", "read_documents"]
