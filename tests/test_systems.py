"""Systems without some of what Unix has: the program starts, and imports a file."""

import subprocess
import sys
from pathlib import Path

import pytest

from core.paths import ROOT

WITHOUT = """
import os, signal, socket, sys
import filelock, streamlit  # which have ways of their own for each system
for module in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[module] = None
for owner, names in (
    (os, ("register_at_fork", "fork", "O_CLOEXEC", "sched_getaffinity", "getuid", "killpg")),
    (socket, ("send_fds", "recv_fds")),
    (signal, ("SIGKILL", "SIGHUP")),
):
    for name in names:
        vars(owner).pop(name, None)
"""
RANKING = "q1 Q0 p1 1 2.5 mine\nq1 Q0 p2 2 1.5 mine\n"


@pytest.mark.slow
def test_a_file_is_imported_without_them(tmp_path: Path):
    (tmp_path / "mine.trec").write_text(RANKING)
    words = ["clq", "--store", str(tmp_path / "store"), "import", str(tmp_path / "mine.trec")]
    script = (
        f"{WITHOUT}\n"
        "import core.ui.serving, core.ui.access\n"
        f"sys.argv = {words!r}\n"
        "from core.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "mine" in done.stdout
