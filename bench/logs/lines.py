"""Lines that look like those of real programs: about 90 characters, with ids, numbers and addresses, some as JSON."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from tidewheel.model.log import LogLine

VERBS: Final = ("opened", "closed", "sent", "received", "stored", "fetched", "parsed", "queued", "skipped", "retried")
THINGS: Final = ("message", "invoice", "report", "payment", "session", "upload", "record", "archive", "order", "ticket")
RARE: Final = ("deadlock", "quarantine", "checksum", "overflow", "truncated")
LEVELS: Final = ("debug", "info", "info", "info", "info", "info", "info", "warning", "info", "error")


def text_of(number: int, chance: random.Random) -> tuple[str, str]:
    """Return the level and the text of a line."""
    level = chance.choice(LEVELS)
    verb, thing, user = chance.choice(VERBS), chance.choice(THINGS), chance.randrange(100_000)
    if number % 10 == 0:
        return (
            level,
            f'{{"level":"{level}","event":"{thing} {verb}","user":{user},"ms":{chance.randrange(2000)},"n":{number}}}',
        )
    rare = f" {chance.choice(RARE)}" if chance.random() < 1e-4 else ""
    address = f"10.{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(256)}"
    return level, f"{thing} {number} of user{user} {verb} by {address} in {chance.randrange(2000)} ms{rare}"


def lines_of(jobs: Sequence[tuple[UUID, int]], each: int, at: datetime, seed: int) -> Iterator[LogLine]:
    """Return so many lines for each of these runs."""
    chance = random.Random(seed)
    for count, (job_id, token) in enumerate(jobs):
        for number in range(each):
            level, text = text_of(seed + count * each + number, chance)
            yield LogLine(job_id, token, number, at, "log", level, text)
