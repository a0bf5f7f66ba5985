"""``measure``: a custom pipeline in one line, resumed, its faults told, and never from a manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.number_format import ms
from tests.cli.test_commands import Cli

pytestmark = pytest.mark.slow

TEXTS = ["cats purr at night", "dogs bark loudly", "cows moo in the field", "pigs grunt", "bees hum at noon"]
ASKED = ["cats at night", "dogs", "what do bees do"]
SHOP = """
def find(query, k=5, bonus=0):
    if query == "dogs":
        raise ValueError("no dogs")
    words = set(query.split())
    texts = %r
    scored = [(f"d{at}", len(words & set(text.split())) + bonus) for at, text in enumerate(texts)]
    return sorted(scored, key=lambda pair: -pair[1])[:k]
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    folder = tmp_path / "barn"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(TEXTS)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    asked = [{"_id": f"q{at}", "text": text} for at, text in enumerate(ASKED)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    rows = "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\nq2\td4\t1\n"
    (folder / "qrels" / "test.tsv").write_text(rows)
    (tmp_path / "shop.py").write_text(SHOP % TEXTS)
    one = Cli(tmp_path)
    one("import", str(folder))
    return one


def measure(cli: Cli, *words: str, code: int = 0) -> list[dict[str, object]]:
    done = cli("measure", "shop:find", "--collection", "barn", "--path", str(cli.folder), *words, code=code)
    return [] if code else json.loads(done.stdout)


def test_one_line_is_a_stack_beside_others(cli: Cli):
    rows = measure(cli, "--name", "shop", "--param", "bonus=0,1", "-k", "3", "--yes", "--format", "json")
    assert [row["label"] for row in rows] == ["shop, K = 3 · bonus 0", "shop, K = 3 · bonus 1"]
    again = measure(cli, "--name", "shop", "--param", "bonus=0,1", "-k", "3", "--yes", "--format", "json")
    assert [row["status"] for row in again] == ["there before"] * 2
    told = cli("measure", "shop:find", "--collection", "barn", "--path", str(cli.folder), "--yes").stderr
    assert "1 of 3 questions failed" in told
    assert "q1: exception: ValueError: no dogs (shop.py:4 in find)" in told
    run_id = str(rows[0]["run_id"])
    assert "A manifest never runs code" in cli("run", "--manifest", run_id, code=1).stderr
    chosen = json.loads(cli("decide", "--format", "json").stdout)["chosen"]
    assert (chosen["cost"], "not priced" in chosen["cost_missing"]) == (None, True)


def test_a_price_given_later_counts(cli: Cli):
    asked = ("--name", "shop", "--param", "bonus=1", "-k", "3", "--yes", "--format", "json")
    (first,) = measure(cli, *asked)

    def cost() -> object:
        return json.loads(cli("decide", "--format", "json").stdout)["chosen"]["cost"]

    assert (first["status"], cost()) == ("new", None)
    for usd, status in (("0.002", "there before, price set"), ("0.002", "there before"), ("0.001", None)):
        (again,) = measure(cli, *asked, "--usd-per-query", usd)
        assert again["status"] == status or status is None
        assert cost() == pytest.approx(1000 * float(usd))
    assert measure(cli, *asked)[0]["status"] == "there before", "a price that is not said again stays"
    assert cost() == pytest.approx(1.0)
    by_the_hour = []
    for usd, status in ((3, "there before, price set"), (3, "there before"), (6, "there before, price set")):
        assert measure(cli, *asked, "--usd-per-hour", str(usd))[0]["status"] == status
        by_the_hour.append(cost())
    assert by_the_hour == pytest.approx([by_the_hour[0], by_the_hour[0], 2 * by_the_hour[0]])


def test_the_hourly_price_that_it_was_measured_at_changes_nothing(cli: Cli):
    asked = ("--name", "shop", "-k", "3", "--yes", "--format", "json")
    said = [measure(cli, *asked, "--usd-per-hour", usd)[0]["status"] for usd in ("2", "2", "1", "2")]
    assert said == ["new", "there before", *["there before, price set"] * 2]


def test_the_time_of_an_empty_pipeline_is_measured_told_and_kept(cli: Cli):
    asked = "measure shop:find --collection barn --name shop -k 3 --yes --format json --path"
    done = cli(*asked.split(), str(cli.folder))
    (row,) = json.loads(done.stdout)
    assert 0 < row["floor_ms"] < 5
    assert f"an empty pipeline takes {ms(row['floor_ms'])}" in done.stderr
    assert "own.floor_ms" in cli("manifest", "show", str(row["run_id"])).stdout


def test_versions_stand_side_by_side(cli: Cli):
    for version in ("old", "new"):
        measure(
            cli,
            "--name",
            "shop",
            "--version",
            version,
            "--yes",
            "--usd-per-query",
            "0.002",
            "--format",
            "json",
        )
    labels = [row["label"] for row in cli.rows("list", "runs")]
    assert sorted(labels) == ["shop, K = 50 · new", "shop, K = 50 · old"]
    decided = json.loads(cli("decide", "--format", "json").stdout)
    assert [decided[side]["cost"] for side in ("chosen", "runner_up")] == [pytest.approx(2.0)] * 2


def test_a_dry_run_calls_nothing_and_the_specification_says_the_same(cli: Cli):
    (cli.folder / "shop.py").write_text("raise SystemExit('it ran')")
    done = cli("measure", "shop:find", "--collection", "barn", "--path", str(cli.folder), "--dry-run")
    assert "1 stack" in done.stdout
    text = cli("measure", "shop:find", "--collection", "barn", "--spec", "--param", "a=1,x").stdout
    assert 'call = "shop:find"' in text
    assert 'params.a = [1, "x"]' in text


def test_what_cannot_be_measured_is_refused(cli: Cli):
    assert "No collection 'sty'" in cli("measure", "shop:find", "--collection", "sty", code=1).stderr
    assert (
        "No module named 'nowhere'"
        in cli(
            "measure", "nowhere:find", "--collection", "barn", "--path", str(cli.folder), "--yes", code=1
        ).stderr
    )
    assert (
        "not a parameter"
        in cli("measure", "shop:find", "--collection", "barn", "--param", "alpha", code=1).stderr
    )
    refused = cli(
        "measure", "shop:find", "--collection", "barn", "--path", str(cli.folder), "--budget", "1", code=1
    )  # fmt: skip
    assert "usd_per_query" in refused.stderr


RETURNS = "Parcels can be returned within 30 days of delivery, in their own box."
SOFTWARE = "Opened software cannot be returned under any circumstances."
REFUND = "The refund is paid within five working days after the parcel has arrived."
GUIDE = {
    "returns.md": f"# Returns\n\n{RETURNS}\n\n## Opened software\n\n{SOFTWARE}\n\n## Refund\n\n{REFUND}\n",
    "shipping.md": "# Shipping\n\nIslands take four days.\n\n## Refund\n\nThere is none for shipping.\n",
}
CUT = """
from pathlib import Path
TEXTS = {path.name: path.read_text() for path in sorted((Path(__file__).parent / "guide").glob("*.md"))}
CHUNKS = [(name, part.split("\\n")[0].strip("# "), part.strip())
          for name, text in TEXTS.items() for part in text.split("\\n#")]

def ranked(query, rows, text):
    words = set(query.lower().split())
    return sorted(rows, key=lambda row: -len(words & set(text(row).lower().replace(".", "").split())))

def files(query, k=5):
    return [name for name, _ in ranked(query, TEXTS.items(), lambda row: row[1])][:k]

def chunks(query, k=5):
    return [{"id": f"mine-{name}-{title}", "doc_id": name, "text": text}
            for name, title, text in ranked(query, CHUNKS, lambda row: row[2])][:k]

def headings(query, k=5):
    return [{"file": f"/srv/guide/{name}", "section": title}
            for name, title, _ in ranked(query, CHUNKS, lambda row: row[2])][:k]
"""
SPEC = """
name = "guide"
collection = "guide/"
queries = "questions.csv"
golden_set = "quotes.csv"
latency.repeats = 1
[axes]
mode = "sparse"
candidates = 2
chunker = { method = "sentence", size = 20, overlap = 0 }
"""


@pytest.fixture
def guide(tmp_path: Path) -> Cli:
    """Documents that a stack cut and searched, judged quotes, and a pipeline that cuts them otherwise."""
    (tmp_path / "guide").mkdir()
    for name, text in GUIDE.items():
        (tmp_path / "guide" / name).write_text(text)
    questions = {
        "q1": "parcels returned 30 days",
        "q2": "opened software",
        "q3": "refund paid five working days",
    }
    (tmp_path / "questions.csv").write_text(
        "query_id,text\n" + "".join(f"{name},{text}\n" for name, text in questions.items())
    )
    quotes = {"q1": RETURNS, "q2": SOFTWARE, "q3": REFUND}
    rows = (f'{name},returns.md,"{quote}",5\n' for name, quote in quotes.items())
    (tmp_path / "quotes.csv").write_text("query_id,source,quote,grade\n" + "".join(rows))
    (tmp_path / "guide.toml").write_text(SPEC)
    (tmp_path / "cut.py").write_text(CUT)
    one = Cli(tmp_path)
    one("run", str(tmp_path / "guide.toml"), "--yes")
    return one


def of_guide(cli: Cli, function: str, *words: str, code: int = 0) -> str:
    path = ("--path", str(cli.folder), "--collection", "guide", "--repeats", "1", "--yes")
    return cli("measure", f"cut:{function}", "--name", function, "-k", "3", *path, *words, code=code).stderr


def scores(cli: Cli) -> dict[str, tuple[float, int]]:
    rows = cli.rows("score", "--collection", "guide", "--measures", "RR@3")
    return {str(row["stack"]): (float(row["value"]), int(row["n"])) for row in rows}


def test_passages_that_a_pipeline_cut_itself_are_judged_by_the_places_of_the_documents(guide: Cli):
    told = of_guide(guide, "chunks")
    assert "passages known: 9 by quote" in told
    assert "chunks, K = 3: RR@10 1.000" in told
    value, n = scores(guide)["chunks, K = 3"]
    assert (value, n) == (1.0, 3)
    (run,) = [row for row in guide.rows("list", "runs") if row["label"] == "chunks, K = 3"]
    golden = [row["golden_set_id"] for row in guide.rows("list", "golden-sets")]
    assert len(golden) == 1
    warned = guide("decide", "--collection", "guide", "--measure", "RR@3").stderr
    assert "documents" not in warned
    assert str(run["run_id"]).startswith("r-")


def test_whole_documents_are_set_apart_from_passages_of_them(guide: Cli):
    told = of_guide(guide, "files")
    assert "files, K = 3 · whole documents: retrieves whole documents, most retrieve passages" in told
    done = guide("decide", "--collection", "guide", "--measure", "RR@3")
    assert "1 stack retrieves whole documents, 1 other passages. They are set apart." in done.stderr
    assert "files" not in done.stdout
    together = guide("decide", "--collection", "guide", "--measure", "RR@3", "--together")
    assert "They stand on one scale, though they do not compare." in together.stderr
    assert "files, K = 3 · whole documents" in together.stdout


def test_source_and_heading_are_offered_and_taken_where_that_is_wanted(guide: Cli):
    tried = guide(
        "measure", "cut:headings", "--collection", "guide", "--path", str(guide.folder), "-k", "2",
        "--try", "refund", "--format", "json",
    )  # fmt: skip
    assert [row["known_by"] for row in json.loads(tried.stdout)] == ["nothing", "nothing"]
    assert "2 of 2 passages match nothing in the collection, by id, text, place or quote" in tried.stderr
    assert "source and heading would tell 2 (match = headings)" in tried.stderr
    assert len(guide.rows("list", "runs")) == 1
    refused = of_guide(guide, "headings", code=1)
    assert "source and heading would tell 3 (match = headings)" in refused
    told = of_guide(guide, "headings", "--match", "headings")
    assert "passages known: 9 by source and heading" in told
    assert scores(guide)["headings, K = 3"] == (1.0, 3)


def test_imported_passages_are_offered_by_where_they_stand_and_taken_so(guide: Cli):
    rows = "stack,query_id,chunk_id,rank,file,text\n" + "".join(
        f'theirs,{query},c-{query},1,/srv/{name},"{text}"\n'
        for query, name, text in (
            ("q1", "returns.md", RETURNS),
            ("q2", "returns.md", SOFTWARE),
            ("q3", "x.md", "?"),
        )
    )
    (guide.folder / "theirs.csv").write_text(rows)
    path = str(guide.folder / "theirs.csv")
    looked = guide("import", path, "--collection", "guide", "--dry-run", "--format", "json").stdout
    assert "2 of 3 passages stand in guide: 2 by quote: --match places takes them so" in looked
    refused = guide("import", path, "--collection", "guide", code=1).stderr
    assert "2 of 3 passages stand in guide: 2 by quote (--match places)" in refused
    taken = guide("import", path, "--collection", "guide", "--match", "places").stdout
    assert "Passages are those of guide: 2 by quote." in taken
    assert "1 passage" in taken or "passages that stand nowhere in the collection" in taken
    value, n = scores(guide)["theirs"]
    assert (value, n) == (pytest.approx(2 / 3, abs=1e-4), 3)


def test_what_is_measured_is_marked_as_running_today(cli: Cli):
    measure(cli, "--name", "shop", "-k", "3", "--yes", "--incumbent", "--format", "json")
    (marked,) = json.loads(cli("incumbent", "--format", "json").stdout)
    assert (marked["collection_id"], marked["label"]) == ("barn", "shop, K = 3")
    refused = measure(cli, "--name", "two", "--param", "bonus=0,1", "--incumbent", "--yes", code=1)
    assert refused == []
    assert json.loads(cli("incumbent", "--format", "json").stdout) == [marked]
