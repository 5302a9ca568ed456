"""One visit: what was asked for, by whom, and what a page or a deed makes of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from tidewheel.model.access import Action
from tidewheel.server.dashboard.desk import Desk
from tidewheel.server.dashboard.memory import Memory
from tidewheel.server.dashboard.pulse import Pulse
from tidewheel.server.endpoint import EVENTS, Answer

LIVE: Final = 0.8
"""What changed is seen within a second."""
Form = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Visit:
    """A request for a page, or a form that was sent."""

    desk: Desk
    pulse: Pulse
    memory: Memory
    now: datetime
    url: str
    """Path and query."""
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Form
    headers: Mapping[str, str]

    @property
    def follows(self) -> bool:
        """Whether only the changing part of the page is wanted, again and again."""
        return EVENTS in self.headers.get("accept", "")

    def field(self, name: str) -> str:
        """Return a field of the form, without spaces around; empty if it was not sent."""
        return self.form.get(name, ("",))[0].strip()


class Shown(NamedTuple):
    """A page to show after a form was sent."""

    template: str
    context: Mapping[str, Any]
    title: str


class Done(NamedTuple):
    """Something was done: go on to another page, which says so."""

    to: str
    told: str
    cookies: Sequence[str] = ()
    kind: Literal["good", "bad"] = "good"


class Page(NamedTuple):
    """A page that can be looked at."""

    path: str
    title: str
    template: str
    load: Callable[[Visit], Awaitable[Mapping[str, Any] | Done]]
    """Returns what the template shows."""
    action: Action
    """What the visitor must be allowed to do, so that the menu can leave out the rest."""
    every: float | None = LIVE
    """Seconds between looks while it is open; None for a page that stays as it is."""
    menu: str = ""
    """Its name in the menu; empty for those that are not there."""


class Deed(NamedTuple):
    """What happens when a form is sent."""

    path: str
    act: Callable[[Visit], Awaitable[Done | Shown]]


class Piped(NamedTuple):
    """A stream of an endpoint, passed on as it is."""

    path: str
    open: Callable[[Visit], Awaitable[Answer]]
