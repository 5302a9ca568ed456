"""Measures Tidewheel: `python -m bench kernel --store postgres|sqlite [--json] [--quick] [--only drain,lanes]`."""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from typing import Any

import uvloop

from bench.kernel import report
from bench.kernel.run import PARTS, STORES, measure
from bench.kernel.sizes import SIZES


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    kernel = parser.add_subparsers(dest="what", required=True).add_parser("kernel", help="submit, claim and settle")
    kernel.add_argument("--store", choices=sorted(STORES), required=True)
    kernel.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    size = kernel.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", help="smaller, about a minute")
    size.add_argument("--tiny", dest="size", action="store_const", const="tiny", help=argparse.SUPPRESS)
    kernel.add_argument("--only", type=_parts, default=tuple(PARTS), help=f"some of {','.join(PARTS)}")
    kernel.set_defaults(size="full")
    return parser.parse_args(words)


def _parts(text: str) -> tuple[str, ...]:
    chosen = text.split(",")
    if unknown := set(chosen) - set(PARTS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in chosen)


async def _measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure; SIGTERM clears away what was begun just as Ctrl-C does."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await measure(options.store, SIZES[options.size], options.only)
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
    print(json.dumps(figures, indent=2) if options.json else report.table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
