"""How long work shows that it moves: as bars on a terminal, and not at all elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bytes_moved(total: int) -> Iterator[Callable[[int], None]]:
    """Give a function that is told of each few bytes that have come or gone, of so many."""
    done = 0

    def moved(more: int) -> None:
        nonlocal done
        done += more
        tell("bytes", done, max(done, total))

    with progress() as tell:
        yield moved


@contextmanager
def progress(unit: str = "") -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that is told what is being done, how much of it is done, and how much there is."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console  # noqa: PLC0415 - takes longer to load than most commands to run
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:<14}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as shown:
        bars: dict[str, object] = {}

        def tell(what: str, done: int, total: int) -> None:
            bar = bars.setdefault(what, shown.add_task(what, total=total) if what not in bars else None)
            shown.update(bar, completed=done)  # type: ignore[arg-type] # what add_task gave

        yield tell


def _nothing(_what: str, _done: int, _total: int) -> None:
    """Show nothing."""
