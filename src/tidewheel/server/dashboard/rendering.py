"""Templates become pages; all that users wrote is escaped, and a name that is missing is an error and not a gap."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tidewheel.server.dashboard.assets import Asset
from tidewheel.server.dashboard.graph import drawing_of

MARKS: Final[Mapping[str, str]] = {
    "blocked": "⋯",
    "scheduled": "◷",
    "queued": "○",
    "retrying": "↻",
    "held": "∥",
    "limited": "⊟",
    "running": "▶",
    "paused": "∥",
    "cancelling": "⊘",
    "succeeded": "✓",
    "dead": "✕",
    "cancelled": "⊘",
    "expired": "◔",
    "dropped": "↧",
    "skipped": "↷",
    "missed": "◌",
    "gone": "·",
    "firing": "▲",
    "resolved": "✓",
    "pending": "○",
    "sent": "✓",
    "failed": "✕",
}
"""A shape for each state, so that colour is never all that tells them apart."""
NOTHING: Final = "\N{EN DASH}"
_STEPS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_KIB: Final = 1024
_SECOND: Final = 1.0
_TEN: Final = 10.0
_LEAST_TOLD: Final = 0.001


class Renderer:
    """Renders templates, or one block of them."""

    def __init__(self, assets: Mapping[str, Asset]) -> None:
        self._environment = Environment(
            loader=PackageLoader("tidewheel.server.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            {
                "span": span,
                "size": size,
                "number": number,
                "percent": percent,
                "pretty": pretty,
                "pretty_text": lambda text: msgspec.json.format(text, indent=2),
                "short": short,
                "mark": lambda state: MARKS.get(str(state), "·"),
            }
        )
        self._environment.globals.update(
            asset=lambda name: assets[name].url, query=query, when=when, drawing=drawing_of, nothing=NOTHING
        )

    def page(self, template: str, context: Mapping[str, Any]) -> bytes:
        """Render a whole page."""
        return self._environment.get_template(template).render(context).encode()

    def block(self, template: str, name: str, context: Mapping[str, Any]) -> str:
        """Render one block of a page."""
        found = self._environment.get_template(template)
        return "".join(found.blocks[name](found.new_context(dict(context))))


def when(instant: datetime | None, now: datetime) -> Markup:
    """Return a time as people say it, with the exact one for whoever points at it."""
    if instant is None:
        return Markup('<span class="none">{}</span>').format(NOTHING)
    exact = instant.astimezone(UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
    away = (instant - now).total_seconds()
    told = "now" if abs(away) < _SECOND else f"in {span(away)}" if away > 0 else f"{span(-away)} ago"
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(instant.isoformat(), exact, told)


def span(length: float | timedelta | None) -> str:
    """Return a duration in the two figures that matter."""
    if length is None:
        return NOTHING
    seconds = length.total_seconds() if isinstance(length, timedelta) else float(length)
    if seconds < _SECOND:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _TEN:
        return f"{seconds:.1f} s"
    for width, unit in _STEPS:
        if seconds >= width:
            whole, rest = divmod(seconds, width)
            finer = {"d": (3_600.0, "h"), "h": (60.0, "min"), "min": (1.0, "s")}[unit]
            part = int(rest // finer[0])
            return f"{whole:.0f} {unit} {part} {finer[1]}" if part and whole < _TEN else f"{whole:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(amount: float) -> str:
    """Return an amount of bytes."""
    step = 0
    while amount >= _KIB and step < len(_SIZES) - 1:
        amount, step = amount / _KIB, step + 1
    return f"{amount:.0f} {_SIZES[step]}" if amount >= _TEN or step == 0 else f"{amount:.1f} {_SIZES[step]}"


def number(value: float | None) -> str:
    """Return a number with thin spaces between thousands."""
    if value is None:
        return NOTHING
    text = f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.1f}"  # noqa: PLR2004
    return text.replace(",", "\u202f")


def percent(share: float | None) -> str:
    """Return a share; what is not nothing is never told as nothing."""
    if share is None:
        return NOTHING
    if 0 < share < _LEAST_TOLD:
        return "<0.1\u202f%"
    hundredths = share * 100
    return f"{hundredths:.0f}\u202f%" if hundredths >= _TEN or not hundredths else f"{hundredths:.1f}\u202f%"


def pretty(value: Any) -> str:
    """Return a value as JSON with one thing on each line."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def short(identity: object) -> str:
    """Return the end of an id, which tells ids apart; the beginning is the time, and much the same for all."""
    return str(identity)[-12:]


def query(given: Mapping[str, Any], **changes: Any) -> str:
    """Return a query string of what was given, with changes; what is None or empty is left out."""
    kept = {name: value for name, value in {**given, **changes}.items() if value not in (None, "")}
    return "?" + urlencode(kept) if kept else ""
