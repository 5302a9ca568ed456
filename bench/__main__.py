"""Measures: `python -m bench kernel|worker|flow|api|logs --store …`, or `rivals`; `[--json] [--quick] [--only …]`."""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import uvloop

from bench import report
from bench.api.suite import API
from bench.flow import FLOW
from bench.kernel.suite import KERNEL
from bench.logs.suite import LOGS
from bench.rivals.suite import RIVALS
from bench.suite import AnySuite
from bench.worker.suite import WORKER

SUITES: Final[Mapping[str, AnySuite]] = MappingProxyType(
    {"kernel": KERNEL, "worker": WORKER, "flow": FLOW, "api": API, "logs": LOGS, "rivals": RIVALS}
)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    chosen = parser.add_subparsers(dest="what", required=True)
    for name, suite in SUITES.items():
        _add_options(chosen.add_parser(name, help=suite.help), suite)
    return parser.parse_args(words)


def _add_options(parser: argparse.ArgumentParser, suite: AnySuite) -> None:
    if len(suite.stores) > 1:
        parser.add_argument("--store", choices=suite.stores, required=True)
    else:
        parser.set_defaults(store=suite.stores[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", help="smaller, about a minute")
    size.add_argument("--tiny", dest="size", action="store_const", const="tiny", help=argparse.SUPPRESS)
    parts = tuple(suite.parts)
    parser.add_argument("--only", type=_some_of(parts), default=parts, help=f"some of {','.join(parts)}")
    parser.set_defaults(size="full")


def _some_of(parts: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def parse_parts(text: str) -> tuple[str, ...]:
        chosen = text.split(",")
        if unknown := set(chosen) - set(parts):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
        return tuple(part for part in parts if part in chosen)

    return parse_parts


async def _measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure; SIGTERM clears away what was begun just as Ctrl-C does."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await SUITES[options.what].measure(options.store, options.size, options.only)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            figures = runner.run(_measure(options))
        except (KeyboardInterrupt, asyncio.CancelledError):
            print("interrupted; everything was removed", file=sys.stderr)
            return 130
    print(json.dumps(figures, indent=2) if options.json else report.table(figures, SUITES[options.what].rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
