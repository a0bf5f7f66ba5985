"""The long forms of the tests that kill processes and flip bits, run by hand.

python -m tests.store.long kills 200 [SEED]
python -m tests.store.long flips 100 [SEED]
"""

from __future__ import annotations

import sys

from tests.store.flips import flip
from tests.store.kills import kill

if __name__ == "__main__":
    what, number, *seed = sys.argv[1:]
    seen, wrong = {"kills": kill, "flips": flip}[what](int(number), int(*seed or [2026]))
    for kind, count in sorted(seen.items()):
        print(f"{count:4} {kind}")
    print(f"wrong: {wrong or 'nothing'}")
