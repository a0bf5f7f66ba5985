"""Machines of a cluster that are processes here, and how one is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.pipeline.evaluate.vendor import Vendor


@contextmanager
def nodes(count: int, cpus: int = 1, **head: Any) -> Iterator[Any]:
    """A cluster of so many machines, which this process has joined."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - so Ray reads it
    args = {"num_cpus": cpus, "include_dashboard": False, **head}
    cluster = Cluster(initialize_head=True, head_node_args=args)
    for _ in range(count - 1):
        cluster.add_node(num_cpus=cpus)
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def lose_a_machine(cluster: Any) -> None:
    """Kill the second machine and all that runs on it."""
    (lost,) = cluster.worker_nodes
    cluster.remove_node(lost, allow_graceful=False)


def wait_for(server: Vendor, requests: int) -> None:
    """Wait until the vendor has answered so many requests."""
    while len(server.lines()) < requests:
        time.sleep(0.01)
