"""Plotly for the live chart: Streamlit keeps its own copy to itself, so another is served beside it."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import plotly
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

_FILE = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PATH = f"plotly-{plotly.__version__}/plotly.min.js"
"""Of the library, beside the pages; another version has another, so browsers may keep it for good."""
PRELOAD = f"<{PATH}>; rel=preload; as=script"
"""The header that lets a browser fetch it while it still starts the page."""
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}


@cache
def _packed() -> bytes:
    return gzip.compress(_FILE.read_bytes())


async def _serve(request: Request) -> Response:
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return FileResponse(_FILE, media_type="text/javascript", headers=_KEPT)
    packed = await run_in_threadpool(_packed)
    return Response(packed, media_type="text/javascript", headers=_KEPT | {"Content-Encoding": "gzip"})


ROUTE = Route("/{base:path}" + PATH, _serve)
"""Wherever the pages lie."""
