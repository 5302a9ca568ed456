"""What the host, the launcher, the inits and the runners say to one another. All of it is JSON."""

from typing import Annotated, Literal

import msgspec

from tidewheel.model.trace import Trace
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker.sandbox.layers import Confinement, Grounds

MAX_MESSAGE = 128 * 1024
"""What fits into one message between host and launcher."""

Word = Literal["stop", "pause", "resume", "kill"]
"""`stop` asks the body to end, `kill` ends all of the tree."""


# From the host to the launcher


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a launcher is told when it starts."""

    host: int
    """The pid of the host, to die with it."""
    app: str | None = None
    """`module:attribute`; None for a launcher of commands."""
    grounds: Grounds = Grounds()


class Fork(msgspec.Struct, frozen=True, kw_only=True, tag="fork"):
    """Make a tree: with a runner, whose channel, stdout and stderr come along, or as a cell, whose channel does."""

    tree: int
    body: Literal["runner", "cell"]
    confinement: Confinement


class Tell(msgspec.Struct, frozen=True, tag="tell"):
    """Pass a word on to a tree, unless it has ended."""

    tree: int
    word: Word


Request = Fork | Tell


# From the launcher and the inits to the host


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The app was loaded; its tasks, in several messages if they are many."""

    tasks: list[CatalogueEntry]
    complete: bool
    lacking: str | None
    """Why this machine cannot give all that strict stands for; None if it can."""


class Unloadable(msgspec.Struct, frozen=True, tag="unloadable"):
    """The app could not be loaded."""

    field: str
    why: str


class Started(msgspec.Struct, frozen=True, tag="started"):
    """A tree has a root, the init with this pid."""

    tree: int
    pid: int


class BodyEnded(msgspec.Struct, frozen=True, kw_only=True, tag="body"):
    """The body of a tree ended, or could not be started."""

    tree: int
    status: int | None = None
    """The exit code, or the negative number of the signal."""
    peak_rss: int = 0
    broken: str | None = None
    """Why the tree could not be made, if that was the reason."""


class Gone(msgspec.Struct, frozen=True, tag="gone"):
    """Nothing of a tree is left."""

    tree: int
    cpu_seconds: float


Report = Loaded | Unloadable | Started | BodyEnded | Gone


# Between the host and a cell


class Program(msgspec.Struct, frozen=True, kw_only=True, tag="program"):
    """Execute this. Along come its stdin, stdout and stderr."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    data: int | None = None
    """Bytes of private memory that each of its processes may have."""


class Say(msgspec.Struct, frozen=True, tag="say"):
    """A word for the program that runs now, if one does."""

    word: Word


CellRequest = Program | Say


class Exited(msgspec.Struct, frozen=True, kw_only=True):
    """The program ended, or could not be executed, and nothing of it is left."""

    layers: tuple[str, ...]
    status: int | None = None
    """The exit code, or the negative number of the signal."""
    missing: str | None = None
    """Why it could not be executed."""
    cpu_seconds: float = 0.0
    peak_rss: int = 0


# Between the host and a runner, in frames of a length and JSON


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A run for a runner."""

    job_id: str
    token: int
    epoch: int
    attempt: int
    kind: str
    args: str
    saved: str | None
    memory: int | None
    scratch: str
    trace: Trace | None = None


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """A runner waits for its first job, behind these layers."""

    layers: tuple[str, ...]


class Logged(msgspec.Struct, frozen=True, tag="log"):
    """A line was logged."""

    level: str
    text: str


class Progressed(msgspec.Struct, frozen=True, tag="progress"):
    """The run has come so far."""

    fraction: Annotated[float, msgspec.Meta(ge=0, le=1)]
    message: str


class Saved(msgspec.Struct, frozen=True, tag="saved"):
    """The next attempt is to find this JSON text."""

    data: str


DoneEnd = Literal["returned", "retry", "fatal", "error", "oom", "unknown"]


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done", omit_defaults=True):
    """The function ended, and all processes that it had started are gone."""

    end: DoneEnd
    result: msgspec.Raw = msgspec.Raw(b"null")
    message: str = ""
    detail: str | None = None
    after: float | None = None
    """Seconds."""
    cpu_seconds: float = 0.0
    peak_rss: int = 0
    untidy: bool = False
    """Whether it left files in its scratch directory."""
    last: bool = False
    """Whether the runner ends now, since it is used up or a thread of the task may still run in it."""


Words = Ready | Logged | Progressed | Saved | Done
