"""All that the program and the children of tests ever import: what `tests.warm` forks from."""

import encodings.utf_8_sig  # noqa: F401 - a child that is nobody may not read the library

import bm25s  # noqa: F401
import faiss  # noqa: F401
import pandas  # noqa: F401
import pytest  # noqa: F401
import requests  # noqa: F401
import streamlit.web.cli  # noqa: F401
import tokenizers  # noqa: F401
import wordllama  # noqa: F401
from typer.main import get_command

from core.cli.app import app
from core.ui.serving import import_everything
from tests.golden import judging  # noqa: F401
from tests.pipeline.evaluate import paid  # noqa: F401
from tests.store import flips, kills  # noqa: F401

import_everything()
dict(get_command(app).commands)  # loaded when they are asked for
