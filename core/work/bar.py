"""Progress of an evaluation, as a bar on a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from core.pipeline.evaluate import Status


@contextmanager
def progressing() -> Iterator[Callable[[Status], None]]:
    """Yield a bar on standard error: stage, passages or questions, dollars, remaining time."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[counted]}", markup=False),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn("{task.fields[usd]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task("read", total=None, counted="", left="", usd="")

        def tell(status: Status) -> None:
            usd = f"${status.usd:.4f}" if status.usd or status.usd_limit is not None else ""
            left = "" if status.eta_s is None else f"{_clock(status.eta_s)} left"
            bar.update(
                task,
                description=status.stage,
                completed=status.share,
                total=1.0 if status.total else None,
                counted=status.so_far or f"{status.done:,} of {status.total:,} steps",
                left=left,
                usd=usd if status.usd_limit is None else f"{usd} of ${status.usd_limit:g}",
            )

        yield tell


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
