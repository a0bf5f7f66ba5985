"""Freezes the demo's corpus: the docstrings of installed packages as passages.

    python -m tools.demo.docstrings

replaces data/demo/passages.parquet. The passages follow the installed versions, so that questions, grades and
the licences beside them have to be looked through afterwards.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
import sys
import warnings
from collections.abc import Sequence

import polars as pl

from core.files import replacing
from core.pipeline.demo import COLLECTION_ID, PASSAGES
from core.tables import frame
from tools.demo.walk import Documented, signature_of, walk

PACKAGES = ("numpy", "polars", "streamlit")
TOKENIZER = "o200k_base"

_EXAMPLES = re.compile(r"^Examples?[ ]*\n-{3,}", re.MULTILINE)
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def passages(packages: Sequence[str] = PACKAGES) -> pl.DataFrame:
    """Read the docstrings of installed packages.

    Args:
        packages: Importable top-level packages.

    Returns:
        A frame of `TABLES["passages"]` in the order of `passage_id`, one row per distinct docstring. The id
        is the most public qualified name (``polars.DataFrame.group_by``), the title that name with the
        signature if Python knows it, the text the cleaned docstring, the tokens those of the text, the
        source the module that exposes the name.

    Raises:
        ModuleNotFoundError: If a package is not installed.
    """
    return _passages(tuple(packages))


@functools.lru_cache(maxsize=4)
def _passages(packages: tuple[str, ...]) -> pl.DataFrame:
    best: dict[str, Documented] = {}
    # The walk touches every public name, deprecated ones too. Their warnings are meant for code that uses the
    # names; here only their documentation is read.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in (each for package in packages for each in walk(package)):
            known = best.get(found.text)
            if known is None or found.rank < known.rank:
                best[found.text] = found
        kept = sorted(best.values(), key=lambda found: found.name)
        titles = [found.name + signature_of(found.target) for found in kept]
    texts = [found.text for found in kept]
    return frame(
        "passages",
        {
            "collection_id": [COLLECTION_ID] * len(kept),
            "passage_id": [found.name for found in kept],
            "title": titles,
            "text": texts,
            "tokens": count_tokens(texts),
            "tokenizer": [TOKENIZER] * len(kept),
            "source": [found.module for found in kept],
        },
    )


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the installed version of each package, by name."""
    return {package: importlib.metadata.version(package) for package in packages}


def described(title: str, text: str) -> tuple[str, str]:
    """Return a passage as stored and searched: its name with the words in it, and its text up to examples.

    ``polars.DataFrame.group_by`` is a single unknown word to most tokenizers, or one that nobody types; split
    at dots, underscores and capitals it can be found by "group by". Examples are left out because printed
    tables and arrays outweigh the description in an averaged vector.

    Args:
        title: The passage's title; a signature in it is left out.
        text: The passage's text.
    """
    name = title.partition("(")[0]
    examples = _EXAMPLES.search(text)
    kept = text[: examples.start()].rstrip() if examples and examples.start() else text
    return f"{name} {' '.join(_WORD.findall(name))}", kept


def to_store(passages: pl.DataFrame) -> pl.DataFrame:
    """Return the passages with titles and texts from `described`, and the tokens of these.

    Args:
        passages: Frame of `TABLES["passages"]` with titles.

    Returns:
        The same rows and columns.
    """
    parts = [described(title, text) for title, text in passages.select("title", "text").iter_rows()]
    titles, texts = map(list, zip(*parts, strict=True))
    return passages.with_columns(
        pl.Series("title", titles),
        pl.Series("text", texts),
        pl.Series("tokens", count_tokens(texts), pl.Int32),
    )


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Count the tokens of each text exactly, in OpenAI's o200k_base vocabulary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it loads its data in an older way
        import bpe_openai  # noqa: PLC0415 - half a second to load, needed only here

        encoder = bpe_openai.get_encoding(TOKENIZER)
    return [len(tokens) for tokens in encoder.encode_ordinary_batch(list(texts))]


def freeze() -> pl.DataFrame:
    """Write the demo's passages and return them."""
    made = to_store(passages()).drop("collection_id", "tokenizer")
    with replacing(PASSAGES) as draft:
        made.write_parquet(draft, compression="zstd", compression_level=22)
    return made


if __name__ == "__main__":
    made = freeze()
    of = ", ".join(f"{name} {version}" for name, version in versions().items())
    sys.stdout.write(f"{made.height} passages of {of}, {PASSAGES.stat().st_size:,} bytes\n")
