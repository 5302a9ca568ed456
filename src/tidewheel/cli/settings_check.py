"""Whether the settings are such that a server, a worker and a keeper would start with them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tidewheel.cli.serving import certificate_of, checked_replica, rate_of
from tidewheel.errors import Invalid
from tidewheel.model.guessing import name_among
from tidewheel.model.retention import parse_upkeep
from tidewheel.model.worker import check_ttl
from tidewheel.observe.own_log import log_setup
from tidewheel.observe.tracing import check_endpoint
from tidewheel.server.access import Auth, check_exposure
from tidewheel.server.serving import resolve
from tidewheel.settings import Value
from tidewheel.tasks.durations import parse_duration
from tidewheel.wiring import blobs_url, database_of
from tidewheel.worker.link import ServerSetup

_DURATIONS: Final = ("grace", "drain", "longest_pause", "reserve_after")
_WORDS: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}

Settings = dict[str, Any]


def complaints(values: Sequence[Value]) -> list[str]:
    """Return what is wrong with the settings, each by itself and together."""
    found: list[str] = []
    settled: Settings = {}
    for value in values:
        try:
            settled[value.setting.name] = _typed(value)
        except Invalid as error:
            settled[value.setting.name] = value.setting.default
            found.append(str(error))
    for check in _CHECKS:
        try:
            check(settled)
        except Invalid as error:
            found.append(str(error))
    return found


def _typed(value: Value) -> Any:
    """Return a value as its setting has it: in a variable, everything is text."""
    kind, given = value.setting.type, value.value
    if given is None or isinstance(given, kind) or not isinstance(given, str):
        return given
    if kind is list:
        return given.split()
    try:
        return _WORDS[given.lower()] if kind is bool else kind(given)
    except (KeyError, ValueError):
        raise Invalid(value.source, f"{given!r:.60} is no value of {value.setting.name}") from None


def _serving(settled: Settings) -> ServerSetup:
    names = {"host": "host", "port": "port", "auth": "auth", "rate": "key_rate", "burst": "key_burst"}
    files = {"tls_cert": "tls_cert", "tls_key": "tls_key"}
    return ServerSetup(**{field: settled[name] for field, name in (names | files).items()})


def _check_places(settled: Settings) -> None:
    database_of(settled["database"])
    blobs_url(settled["database"], settled["blobs"])


def _check_replica(settled: Settings) -> None:
    checked_replica(settled["replica"])
    if settled["replica"] is not None and not settled["database"].startswith("postgres"):
        raise Invalid("replica", "is for a database on PostgreSQL, and the database is none")


def _check_exposure(settled: Settings) -> None:
    auth = name_among("auth", settled["auth"], list(Auth))
    check_exposure(resolve(settled["host"]), auth)


def _check_durations(settled: Settings) -> None:
    check_ttl(parse_duration(settled["lease"], "lease"), "lease")
    for name in _DURATIONS:
        parse_duration(settled[name], name)


def _check_upkeep(settled: Settings) -> None:
    parse_upkeep(settled["keep"], settled["max_age"], settled["notify_private"], settled["alert"])


def _check_secrets(settled: Settings) -> None:
    folder = settled["secrets"]
    if folder is not None and not Path(folder).is_dir():
        raise Invalid("secrets", f"there is no folder {folder}")


_CHECKS: Final[tuple[Callable[[Settings], object], ...]] = (
    _check_places,
    _check_replica,
    _check_exposure,
    lambda settled: certificate_of(_serving(settled)),
    lambda settled: rate_of(_serving(settled)),
    _check_durations,
    _check_upkeep,
    _check_secrets,
    lambda settled: log_setup(settled["log_format"], settled["log_level"]),
    lambda settled: check_endpoint(settled["otel_endpoint"]),
)
