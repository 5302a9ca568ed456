"""Every setting of the program, in one place: its name, type, default and meaning.

A setting `max_age` is the option `--max-age`, the variable `TIDE_MAX_AGE` and the key `max_age` of a file
`tidewheel.toml`. The option comes first, then the variable, then the file, then the default. Commands make their
options from this table, and `docs/reference/settings.md` is made from it.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from tidewheel.errors import Invalid
from tidewheel.model.guessing import did_you_mean

PREFIX: Final = "TIDE_"
_OF_PLACES: Final = ("CONFIG", "PROFILE", "URL", "KEY", "TENANT", "OUTPUT")
"""Variables that are read and are no settings of a process."""
_OF_RUNS: Final = ("JOB_ID", "ATTEMPT", "FENCING_TOKEN", "OUTPUT_DIR", "RESULT")
"""Variables that a job finds, which may call `tide` itself."""
_OF_OTHERS: Final = ("SECRET_", "TEST_", "SERVICE_", "PORT_")
"""How variables begin that are none of ours: secrets, and what Kubernetes sets for a service that is called tide."""
CONFIG_NAME: Final = "tidewheel.toml"
CONFIG_VARIABLE: Final = "TIDE_CONFIG"
PROFILES: Final = "profile"
"""The table of a file that has a table for each profile: a place that one talks to by its name."""
OF_PROFILE: Final = ("url", "key", "database", "tenant", "output")
_SLIP: Final = 0.75
"""How like another name one must be to be taken for a slip; other people may have variables that begin like ours."""
_TYPES: Final[Mapping[type, str]] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of texts",
}
_SERVING: Final = ("server", "up")
_WORKING: Final = ("worker", "up")
_KEEPING: Final = ("server", "worker", "up", "keeper run")
_PROCESSES: Final = ("server", "worker", "up", "keeper run")


class Setting(NamedTuple):
    """One setting."""

    name: str
    type: type
    default: Any
    help: str
    commands: tuple[str, ...] | None = None
    """The commands that have it; None for all that work with a database."""
    secret: bool = False
    """Whether it may hold a password. Such a one may also come from a file, named by `TIDE_…_FILE`."""
    typed: bool = True
    """Whether it is an option, too; what is typed can be seen in the list of processes."""

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """The option."""
        return "--" + self.name.replace("_", "-")


class Value(NamedTuple):
    """What a setting is, and who says so."""

    setting: Setting
    value: Any
    source: str


_TABLE: Final = (
    Setting(
        "database",
        str,
        "sqlite:///tidewheel.db",
        "Where the jobs live: sqlite:///file, postgresql://user@host/name, or the https:// address of a server "
        "(with its key in TIDE_KEY).",
        secret=True,
    ),
    Setting(
        "blobs",
        str,
        None,
        "Where large results and artifacts live: file:///folder or s3://bucket/prefix. "
        "By default with the server, in a folder beside the SQLite file, or in the current directory.",
    ),
    Setting(
        "max_args_bytes",
        int,
        256 * 1024,
        "How many bytes the arguments of a job may have as JSON, from 1024 to 983040; schedules stay at 262144.",
    ),
    Setting("host", str, "127.0.0.1", "The address to listen on.", _SERVING),
    Setting("port", int, 8433, "The port to listen on; 0 takes any that is free.", _SERVING),
    Setting(
        "auth",
        str,
        "auto",
        "Whether keys are asked for (auto, required, off). auto: always, but on loopback not before there is a key.",
        _SERVING,
    ),
    Setting("key_rate", float, None, "Requests a second for each key without a rate of its own.", _SERVING),
    Setting("key_burst", int, None, "How many of them at once after a pause.", _SERVING),
    Setting("tls_cert", str, None, "The file of a certificate with its chain, for HTTPS.", _SERVING),
    Setting("tls_key", str, None, "The file of the certificate's key.", _SERVING),
    Setting(
        "behind_tls",
        bool,
        default=False,
        help="Whether all who come by a browser come by a proxy that speaks HTTPS: cookies are then for HTTPS alone.",
        commands=_SERVING,
    ),
    Setting(
        "replica",
        str,
        None,
        "A replica of a PostgreSQL database, from which lists are read while it keeps up: postgresql://user@host/name.",
        _SERVING,
        secret=True,
    ),
    Setting("workers", int, 1, "How many processes share the requests.", ("server",)),
    Setting("app", str, None, "The app whose tasks to run, as package.module:attribute.", _WORKING),
    Setting("queue", list, ["default"], "A queue to serve; may be given several times.", ("worker",)),
    Setting("inline", int, 1, "Runners: processes for async functions, each with an event loop.", ("worker",)),
    Setting("concurrency", int, 100, "How many async functions a runner serves at once.", ("worker",)),
    Setting("slots", int, None, "How many processes and commands run at once.  [default: cores]", _WORKING),
    Setting(
        "resource",
        list,
        [],
        "What this machine has, such as gpu=2 or memory=8GiB; cpu and memory are detected.",
        ("worker",),
    ),
    Setting("label", list, [], "A label that jobs may ask for, such as zone=a.", ("worker",)),
    Setting(
        "env",
        list,
        [],
        "A variable that plain functions and commands may see: NAME to pass it on, or NAME=value.",
        ("worker",),
    ),
    Setting(
        "least_isolation",
        str,
        "standard",
        "What commands have at least: none, standard or strict. A job may ask for more, and never for less.",
        _WORKING,
    ),
    Setting("lease", str, "30s", "How long a silent worker keeps its jobs, from 2s to 1h.", ("worker",)),
    Setting("grace", str, "5s", "How long a run that must end has to do so by itself.", ("worker",)),
    Setting("drain", str, "30s", "How long to wait for running jobs at the first SIGTERM or Ctrl-C.", ("worker",)),
    Setting("longest_pause", str, "10m", "After how long a paused run goes on, whoever else runs.", ("worker",)),
    Setting(
        "reserve_after",
        str,
        "30s",
        "After how long a job too large for what is free has what becomes free kept for it.",
        ("worker",),
    ),
    Setting("name", str, None, "The worker's name, for people.  [default: the host's name]", ("worker",)),
    Setting("log_format", str, "text", "How it writes its own log, to stderr: text or json.", _PROCESSES),
    Setting("log_level", str, "info", "What it writes: debug, info, warning or error, and all above.", _PROCESSES),
    Setting(
        "otel_endpoint",
        str,
        None,
        "Where spans of submits and runs are sent, by OTLP over HTTP, such as http://collector:4318. Needs the extra "
        "otel; OTEL_EXPORTER_OTLP_ENDPOINT does the same.",
        _PROCESSES,
    ),
    Setting(
        "metrics_port",
        int,
        None,
        "The port on which it answers /metrics, /livez and /readyz; 0 takes any that is free. Without it, none.",
        ("worker", "keeper run"),
    ),
    Setting("metrics_host", str, "127.0.0.1", "The address of that port.", ("worker", "keeper run")),
    Setting("keeper", bool, default=True, help="Whether to do a share of the chores.", commands=("server", "worker")),
    Setting(
        "secrets",
        str,
        None,
        "A folder of secrets that jobs may name, as tenant/name. "
        "Those of the tenant default may also be in TIDE_SECRET_<NAME>.",
        _WORKING,
    ),
    Setting(
        "secrets_key",
        str,
        None,
        "The key that stored secrets are encrypted by: 32 bytes in base64. If there are several, apart by commas or "
        "white space, the first encrypts, and each opens what it encrypted.",
        secret=True,
        typed=False,
    ),
    Setting(
        "keep",
        list,
        [],
        "How long finished jobs are kept: dead=90d, or emails:succeeded=1d for one kind. May be repeated.",
        _KEEPING,
    ),
    Setting("max_age", str, "14d", "How long a job may wait since it was last due, or off.", _KEEPING),
    Setting(
        "notify_private",
        list,
        [],
        "A private network that messages may be sent to, such as 10.0.0.0/8; public ones always may. May be repeated.",
        _PROCESSES,
    ),
    Setting(
        "alert",
        list,
        [],
        "From when on an alert fires, such as queue_age=20m, clock_offset=1s or free_disk=2GiB. May be repeated.",
        _PROCESSES,
    ),
)
SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType({setting.name: setting for setting in _TABLE})


def read_file(path: Path) -> dict[str, Any]:
    """Return what a file says. Raises Invalid for what is no setting, or has the wrong type."""
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise Invalid("config", f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid("config", f"{path}: {error}") from None
    for name, value in found.items():
        if name == PROFILES:
            _check_profiles(path, value)
        else:
            _check(path, name, value)
    return found


def _check_profiles(path: Path, profiles: Any) -> None:
    if not isinstance(profiles, dict) or not all(isinstance(one, dict) for one in profiles.values()):
        raise Invalid("config", f"{path}: {PROFILES} must have tables, such as [profile.production]")
    for name, said in profiles.items():
        for key, value in said.items():
            if key not in OF_PROFILE:
                raise Invalid("config", f"{path}: {PROFILES}.{name} has no {key!r}{did_you_mean(key, OF_PROFILE)}")
            if not isinstance(value, str):
                raise Invalid("config", f"{path}: {PROFILES}.{name}.{key} must be text, not {value!r:.60}")


def variables_of_profile(said: Mapping[str, Any], name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a profile stands for; those that are set come first. Raises Invalid."""
    profiles = said.get(PROFILES, {})
    if name not in profiles:
        raise Invalid(PROFILES, f"there is no profile {name!r} in the file of settings{did_you_mean(name, profiles)}")
    variables = {PREFIX + key.upper(): value for key, value in profiles[name].items()}
    return {variable: value for variable, value in variables.items() if variable not in environment}


def _check(path: Path, name: str, value: Any) -> None:
    setting = SETTINGS.get(name)
    if setting is None:
        raise Invalid("config", f"{path}: {name!r} is no setting{did_you_mean(name, SETTINGS)}")
    good = type(value) is setting.type or (setting.type is float and type(value) is int)
    if setting.type is list:
        good = good and all(isinstance(one, str) for one in value)
    if not good:
        told = "" if setting.secret else f", not {value!r:.60}"
        raise Invalid("config", f"{path}: {name} must be {_TYPES[setting.type]}{told}")


def find_file(chosen: str | None, environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the file to read: the one that someone chose, or the usual one if it is there."""
    named = chosen or environment.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    usual = folder / CONFIG_NAME
    return usual if usual.exists() else None


def read_secret_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that `TIDE_…_FILE` stand for; one that is set itself comes first."""
    wanted = [one for one in SETTINGS.values() if one.secret and one.variable not in environment]
    return {one.variable: text for one in wanted if (text := read_secret_file(one, environment)) is not None}


def read_secret_file(setting: Setting, environment: Mapping[str, str]) -> str | None:
    """Return what the file says that `TIDE_…_FILE` names for a setting; None if it names none."""
    path = environment.get(f"{setting.variable}_FILE")
    if not path:
        return None
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{setting.variable}_FILE", f"{path}: {error}") from None


def resolve(said: Mapping[str, Any], file: Path | None, environment: Mapping[str, str]) -> list[Value]:
    """Return all settings as they are without options, each with its source."""
    found = []
    for setting in SETTINGS.values():
        if given := environment.get(setting.variable):
            found.append(Value(setting, given, setting.variable))
        elif setting.name in said:
            found.append(Value(setting, said[setting.name], str(file)))
        else:
            found.append(Value(setting, setting.default, "default"))
    return found


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the variables that look like settings and are none; one that is empty is as if it were not there."""
    known = {PREFIX + name for name in (*_OF_PLACES, *_OF_RUNS)}
    for setting in SETTINGS.values():
        known |= {setting.variable, f"{setting.variable}_FILE"} if setting.secret else {setting.variable}
    others = tuple(PREFIX + start for start in _OF_OTHERS)
    ours = [name for name, value in environment.items() if name.startswith(PREFIX) and value]
    return sorted(name for name in ours if name not in known and not name.startswith(others))


def check_variables(environment: Mapping[str, str]) -> None:
    """Refuse a variable that is so like one of ours that it must be a slip: what it says would go unheard."""
    known = [*(name.upper() for name in SETTINGS), *_OF_PLACES]
    for name in unknown_variables(environment):
        if guess := did_you_mean(name.removeprefix(PREFIX), known, likeness=_SLIP):
            raise Invalid(name, f"is no setting{guess.replace('mean ', f'mean {PREFIX}')}")


def shown(value: Value) -> Any:
    """Return a value that may be shown: passwords are masked."""
    if not value.setting.secret or not isinstance(value.value, str):
        return value.value
    if not value.setting.typed:
        return "***"
    try:
        parts = urlsplit(value.value)
        hidden = parts.password is not None or "password=" in parts.query.lower()
    except ValueError:
        return "***"
    if not hidden:
        return value.value
    user = f"{parts.username}:***@" if parts.password is not None else f"{parts.username}@" if parts.username else ""
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(
        netloc=user + place, query="***" if "password=" in parts.query.lower() else parts.query
    ).geturl()


def reference() -> str:
    """Return the table of all settings for the docs."""
    lines = ["| key | option | variable | type | default | of | meaning |", "|---|---|---|---|---|---|---|"]
    for one in SETTINGS.values():
        default = "" if one.default is None or one.default == [] else f"`{_plain(one.default)}`"
        commands = "all" if one.commands is None else ", ".join(f"`{name}`" for name in one.commands)
        flag = f"`{one.flag}`" if one.type is not bool else f"`{one.flag}`, `--no-{one.flag[2:]}`"
        flag = flag if one.typed else ""
        kind = _TYPES[one.type].removeprefix("a ")
        meaning = one.help.replace("|", "\\|")
        lines.append(f"| `{one.name}` | {flag} | `{one.variable}` | {kind} | {default} | {commands} | {meaning} |")
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return (
        ", ".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else str(value)
    )
