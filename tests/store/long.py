"""The long forms of the tests that kill processes and flip bits, run by hand.

python -m tests.store.long kills 200 [SEED]
python -m tests.store.long flips 100 [SEED]
"""

from __future__ import annotations

import importlib
import sys

if __name__ == "__main__":  # and not in the children, which are told the one thing that they do
    what, number, *seed = sys.argv[1:]
    module = importlib.import_module(f"tests.store.{what}")
    seen, wrong = module.repeat(int(number), int(*seed or [2026]))
    for kind, count in sorted(seen.items()):
        print(f"{count:4} {kind}")
    print(f"wrong: {wrong or 'nothing'}")
