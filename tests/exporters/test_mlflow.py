"""MLflow over its REST API, against a local server that speaks the wire format."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from core.analysis.export import tracked
from core.errors import InputError
from core.exporters.mlflow import Tracked, key, send
from core.metrics import parse_list
from core.paths import PRICES
from core.prices import load_books
from core.store import Store
from tests.stores import Lab
from tests.views.made import LAB

AT = datetime(2026, 1, 2, tzinfo=UTC)
RUN = Tracked(
    "a stack",
    AT,
    {"embedder": "e", "fusion.depth": "100"},
    {"RA-nWG@10": 0.5, "none": float("nan")},
    {"t": "x"},
)


class Tracking:
    """What a tracking server keeps."""

    def __init__(self, server: HTTPServer) -> None:
        self.uri = server.url_for("").rstrip("/")
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.experiments: dict[str, str] = {}
        self.fails_at: str | None = None
        server.expect_request("/api/2.0/mlflow/experiments/get-by-name").respond_with_handler(self._by_name)
        for path in ("experiments/create", "runs/create", "runs/log-batch", "runs/update"):
            server.expect_request(f"/api/2.0/mlflow/{path}", method="POST").respond_with_handler(self._post)

    def _by_name(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        name = request.args["experiment_name"]
        if name in self.experiments:
            return _json({"experiment": {"experiment_id": self.experiments[name], "name": name}})
        return _json({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "No such experiment"}, 404)

    def _post(self, request: Request) -> Response:
        path = request.path.removeprefix("/api/2.0/mlflow/")
        sent = request.get_json()
        self.calls.append((path, sent))
        if path == self.fails_at:
            return _json(
                {"error_code": "INVALID_PARAMETER_VALUE", "message": "secret-token was refused"}, 400
            )
        if path == "experiments/create":
            self.experiments[sent["name"]] = "7"
            return _json({"experiment_id": "7"})
        if path == "runs/create":
            return _json(
                {"run": {"info": {"run_id": f"id{len(self.of(path))}", "run_name": sent["run_name"]}}}
            )
        return _json({})

    def of(self, path: str) -> list[dict[str, Any]]:
        return [sent for each, sent in self.calls if each == path]


def _json(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value), status, content_type="application/json")


@pytest.fixture
def server(httpserver: HTTPServer) -> Tracking:
    return Tracking(httpserver)


def test_a_run_is_created_filled_and_finished(server: Tracking):
    assert send([RUN, RUN], server.uri, "My runs", environ={}) == ["id1", "id2"]
    assert [path for path, _ in server.calls] == [
        "experiments/create",
        *["runs/create", "runs/log-batch", "runs/update"] * 2,
    ]
    assert server.of("runs/create")[0] == {
        "experiment_id": "7",
        "run_name": "a stack",
        "start_time": int(AT.timestamp() * 1000),
        "tags": [{"key": "t", "value": "x"}],
    }
    assert server.of("runs/log-batch")[0] == {
        "run_id": "id1",
        "metrics": [
            {"key": "RA-nWG_at_10", "value": 0.5, "timestamp": int(AT.timestamp() * 1000), "step": 0}
        ],
        "params": [{"key": "embedder", "value": "e"}, {"key": "fusion.depth", "value": "100"}],
    }
    assert server.of("runs/update")[0]["status"] == "FINISHED"
    send([RUN], server.uri + "/", "My runs", environ={})
    assert len(server.of("experiments/create")) == 1, "the experiment is found the second time"


def test_batches_keep_to_the_limits(server: Tracking):
    many = Tracked(
        "m", AT, {f"p{n}": "v" * 7000 for n in range(200)}, {f"m{n}": float(n) for n in range(1000)}
    )
    send([many], server.uri, "x", environ={})
    batches = server.of("runs/log-batch")
    counts = [(len(each.get("metrics", ())), len(each.get("params", ()))) for each in batches]
    assert counts == [(900, 90), (100, 90), (0, 20)]
    assert {each["key"] for batch in batches for each in batch["params"]} == set(many.params)
    assert {len(each["value"]) for batch in batches for each in batch.get("params", ())} == {6000}


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("RA-nWG@10", "RA-nWG_at_10"),
        ("N-Recall4+@30", "N-Recall4plus_at_30"),
        ("%PROC[RA-nWG]@10", "pct_PROC_RA-nWG__at_10"),
        ("a/b:c", "a_b_c"),
        ("..", "unnamed"),
        ("n" * 300, "n" * 240),
    ],
)
def test_names_that_mlflow_allows(name: str, allowed: str):
    assert key(name) == allowed


def test_two_names_that_become_one_are_kept_apart(server: Tracking):
    send([Tracked("r", AT, metrics={"a@1": 1.0, "a_at_1": 2.0})], server.uri, "x", environ={})
    assert [each["key"] for each in server.of("runs/log-batch")[0]["metrics"]] == ["a_at_1", "a_at_1_2"]


@pytest.mark.parametrize(
    ("environ", "header"),
    [
        ({}, None),
        ({"MLFLOW_TRACKING_TOKEN": "secret-token"}, "Bearer secret-token"),
        ({"MLFLOW_TRACKING_USERNAME": "u", "MLFLOW_TRACKING_PASSWORD": "p"}, "Basic dTpw"),
    ],
)
def test_credentials_come_from_the_environment(server: Tracking, environ: dict[str, str], header: str | None):
    send([RUN], server.uri, "x", environ=environ)
    assert server.headers[0].get("Authorization") == header


def test_a_refusal_is_told_without_the_token(server: Tracking):
    server.fails_at = "runs/log-batch"
    with pytest.raises(InputError) as caught:
        send([RUN], server.uri, "x", environ={"MLFLOW_TRACKING_TOKEN": "secret-token"})
    said = str(caught.value)
    assert server.of("runs/update")[-1]["status"] == "FAILED"
    assert "0 of 1 runs were logged. runs/log-batch was answered with 400: … was refused" in said
    assert "secret-token" not in said


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("./mlruns", "not the address"),
        ("ftp://host", "not the address"),
        ("http://host:x", "not the address"),
        ("http://u:p@host", "holds credentials"),
        ("http://127.0.0.1:1", "does not answer"),
    ],
)
def test_addresses_that_cannot_be_used(uri: str, words: str):
    with pytest.raises(InputError, match=words) as caught:
        send([RUN], uri, "x", environ={})
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, "<html>", "no MLflow answer"),
        (302, "", "answered with 302"),
        (403, "{}", "refuses the request"),
        (200, "{}", "not an MLflow tracking server"),
    ],
)
def test_other_servers(httpserver: HTTPServer, status: int, body: str, words: str):
    httpserver.expect_request("/api/2.0/mlflow/experiments/get-by-name").respond_with_data(body, status)
    with pytest.raises(InputError, match=words):
        send([RUN], httpserver.url_for(""), "x", environ={})


def test_what_is_told_of_a_store(tmp_path: Path):
    lab = Lab().judge({"q1": {"p": 5, "x": 1}, "q2": {"p": 5}})
    lab.run(
        "r",
        label="mine",
        spec={"candidates": 50, "fusion": {"method": "rrf", "depth": 100}, "reranker": None},
        pool="dense@50",
        final={"q1": ["p"], "q2": ["x", "p"]},
        ms={"sparse": [2.0, 4.0]},
    )
    lab.run("bare")
    snapshot = lab.write(tmp_path / "store").read()
    bare, mine = tracked(snapshot, LAB, parse_list("RR@10,N-Recall4+@1"), load_books(PRICES)["list"])
    assert (bare.name, bare.metrics) == ("bare", {})
    assert mine.params == {
        "collection": "lab", "golden_set": "gold", "pool": "dense@50", "prices": "list", "name": "r",
        "candidates": "50", "fusion.method": "rrf", "fusion.depth": "100",
    }  # fmt: skip
    numbers = {name: value for name, value in mine.metrics.items() if not name.endswith(("low", "high"))}
    assert numbers == {
        "RR@10": 0.75, "RR@10 n": 2.0, "N-Recall4+@1": 0.5, "N-Recall4+@1 n": 2.0, "latency_p50_ms": 3.0,
    }  # fmt: skip
    assert mine.tags["clq.run_id"] == "r"


@pytest.mark.slow
def test_the_published_figures_are_told_too(published_store: Path, server: Tracking):
    from typer.testing import CliRunner

    from core.cli.app import app

    words = [
        "--store",
        str(published_store),
        "export",
        server.uri,
        "--format",
        "mlflow",
        "--format",
        "json",
        "--experiment",
        "Paper",
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    runs = Store.open(published_store).read().runs().height
    assert json.loads(result.stdout) == [{"what": "runs", "count": runs}]
    assert len(server.of("runs/create")) == runs
    assert server.experiments == {"Paper": "7"}
    result = CliRunner().invoke(app, [*words[:4], "--format", "mlflow", "--format", "trec"])
    assert result.exit_code == 1
