"""Every error that Tidewheel raises on purpose, in one tree.

    TideError
    ├── Invalid(field, why)            the caller's input; nothing was stored          422
    ├── NotFound(what, key)                                                             404
    ├── Conflict                       the request is fine, the present state is not    409
    │   ├── KeyReused(key)             an idempotency key came back with another body
    │   ├── AlreadyActive(job_id)      a job with the same unique key has not ended
    │   ├── IdTaken(job_id)            there is a job with the id that was given
    │   ├── NotFinished(job_id, state) only for jobs that have ended
    │   ├── NameTaken(name)            there is a schedule of that name
    │   ├── StaleVersion(…)            it was changed since it was read
    │   ├── SecretsLocked              stored secrets are there, and no key that opens them
    │   └── IllegalMove(state, cause)  no such move in the transition table
    ├── Unauthenticated                no key, or one that opens nothing: never said which  401
    ├── Forbidden(action, role)        the key is good, its role or tenant is not           403
    ├── TooMany(what, retry_after)     too many requests, or jobs: later                    429
    ├── LeaseLost(worker_id)           the worker is no longer alive for the store      409
    ├── JobFailed(job_id, state, …)    a job was waited for that ended without a result —
    │   └── JobCancelled               someone cancelled it
    ├── Unavailable                    try again; the cause is kept                     503
    │   ├── OutcomeUnknown             the write may or may not have happened
    │   ├── StoreFull                  no room left; nothing was written
    │   └── Damaged(what, key)         what is stored is not what was stored
    └── StoreMismatch                  program and store do not fit; says what to do    —

Branches mean different things to a caller: mend the request, look again, or wait. Signals that a job raises to steer
itself (retry later, give up) are not errors and do not live here.
"""


class TideError(Exception):
    """The base of all errors of Tidewheel."""


class Invalid(TideError):
    """One field of the input is wrong; nothing was stored."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


class NotFound(TideError):
    """There is no such thing, or it is not the caller's."""

    def __init__(self, what: str, key: object) -> None:
        super().__init__(f"no {what} {key}")
        self.what = what
        self.key = key


class Conflict(TideError):
    """The request is well formed but does not fit the present state."""


class KeyReused(Conflict):
    """An idempotency key was used before with a different request."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used before with a different request")
        self.key = key


class AlreadyActive(Conflict):
    """A job with the same unique key is still active."""

    def __init__(self, job_id: object, key: str) -> None:
        super().__init__(f"job {job_id} with unique key {key!r} is still active")
        self.job_id = job_id
        self.key = key


class QueueFull(Conflict):
    """As many jobs wait in a queue, or with a key, as its cap allows; nothing was stored."""

    def __init__(self, why: str, most: int, *, queue: str | None = None, key: str | None = None) -> None:
        super().__init__(why)
        self.queue = queue
        self.key = key
        self.most = most


class IdTaken(Conflict):
    """There is a job with the id that was given, active or finished."""

    def __init__(self, job_id: object) -> None:
        super().__init__(f"there is a job {job_id} already")
        self.job_id = job_id


class NotFinished(Conflict):
    """The job has not ended yet, and only what has ended may be treated so."""

    def __init__(self, job_id: object, state: str) -> None:
        super().__init__(f"job {job_id} is {state}: cancel it, or wait for its end")
        self.job_id = job_id
        self.state = state


class NameTaken(Conflict):
    """There is a schedule of that name already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule named {name!r} already")
        self.name = name


class StaleVersion(Conflict):
    """A schedule, a gate or a limit was changed since the version that the caller knows."""

    def __init__(self, name: str, given: int, current: int, what: str = "schedule") -> None:
        # A version of 0 stands for one that is not there.
        now = f"is at version {current} by now, not {given}" if current else "is not there"
        super().__init__(f"{what} {name!r} {now}: read it again")
        self.name = name
        self.given = given
        self.current = current


class SecretsLocked(Conflict):
    """No key is configured that seals or opens stored secrets; it says which, and what to do."""


class IllegalMove(Conflict):
    """The transition table has no such move."""

    def __init__(self, state: str, cause: str) -> None:
        super().__init__(f"a {state} job cannot move by {cause}")
        self.state = state
        self.cause = cause


class Unauthenticated(TideError):
    """There was no key, or one that opens nothing. The words are always the same: they are no hint."""

    def __init__(self) -> None:
        super().__init__("a valid key is needed")


class Forbidden(TideError):
    """The key is good, but its role or tenant does not allow this."""

    def __init__(self, action: str, role: str) -> None:
        super().__init__(f"the role {role} of this key does not allow {action}")
        self.action = action
        self.role = role


class TooMany(TideError):
    """More was asked for than is allowed now; `retry_after` are the seconds until it is worth another try."""

    def __init__(self, what: str, retry_after: int) -> None:
        super().__init__(f"too many {what}: try again in {retry_after} s")
        self.what = what
        self.retry_after = retry_after


class LeaseLost(TideError):
    """The store no longer counts this worker as alive."""

    def __init__(self, worker_id: object) -> None:
        super().__init__(f"worker {worker_id} holds no lease any more")
        self.worker_id = worker_id


class JobFailed(TideError):
    """A job that someone waited for ended without a result."""

    def __init__(self, job_id: object, state: str, reason: str, message: str) -> None:
        told = f"{reason}: {message}" if message else reason
        super().__init__(f"job {job_id} is {state}" + (f" ({told})" if told and told != state else ""))
        self.job_id = job_id
        self.state = state
        self.reason = reason
        self.message = message


class JobCancelled(JobFailed):
    """A job that someone waited for was cancelled."""


class Unavailable(TideError):
    """The store cannot answer now; nothing is wrong with the request."""


class OutcomeUnknown(Unavailable):
    """The connection was lost during a write, which may or may not have happened."""


class StoreFull(Unavailable):
    """The store has no room left; nothing was written."""


class Damaged(Unavailable):
    """What came back is not what was stored; if it is not the way that spoils it, it must be stored anew."""

    def __init__(self, what: str, key: object) -> None:
        super().__init__(f"{what} {key} is damaged: its content does not match its digest")
        self.what = what
        self.key = key


class StoreMismatch(TideError):
    """The schema of the store and this program do not fit together."""
