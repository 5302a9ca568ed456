"""What was read of a job must still be so when it ends."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.builders import a_job
from tidewheel.model.states import Cause, State
from tidewheel.store.sqlite import open_store
from tidewheel.store.sqlite.ending import end_waiting
from tidewheel.store.sqlite.releasing import Waiting
from tidewheel.store.sqlite.session import Session

_read = msgspec.json.Decoder(Waiting).decode


@pytest.mark.parametrize("stale", [{"state": State.BLOCKED}, {"token": 1}])
async def test_a_job_that_has_changed_since_it_was_looked_at_is_not_lost(tmp_path: Path, stale: dict[str, Any]) -> None:
    store = await open_store(tmp_path / "jobs.db")
    [job] = await store.submit([a_job()])

    def end(session: Session) -> int:
        seen = _read(session.value("find_active", id=job.job_id.bytes, tenant=None))
        return end_waiting(session, [msgspec.structs.replace(seen, **stale)], Cause.CANCELLED, "", session.now)

    with pytest.raises(AssertionError, match="was not in the state"):
        await store._write(end)

    assert (await store.get(job.job_id)).state is State.QUEUED
    await store.close()
