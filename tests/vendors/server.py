"""The server in a process of its own, that survives the one it serves.

    python -m tests.vendors.server --port-file PORT --log CALLS.jsonl

It is asked over HTTP: GET /state; POST /script {"endpoint": …, "steps": [{"kind": …}]}; POST /reset.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.vendors.serving import make
from tests.vendors.state import State


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the vendors' wire formats until killed.")
    parser.add_argument("--port-file", type=Path, required=True, help="takes the port when it is open")
    parser.add_argument("--log", type=Path, help="takes a JSON line per event")
    parser.add_argument("--delay-s", type=float, default=0.0, help="how long every good answer takes")
    given = parser.parse_args()
    server = make(State(log=given.log, delay_s=given.delay_s))
    whole = given.port_file.with_suffix(".part")
    whole.write_text(str(server.server_address[1]))
    whole.replace(given.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
