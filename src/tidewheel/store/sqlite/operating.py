"""What operators ask of the store: gates."""

import asyncio
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import apsw

from tidewheel.model.gate import Gate, GateSpec, check_gate
from tidewheel.store.sqlite import gating
from tidewheel.store.sqlite.session import Session

T = TypeVar("T")


class Operating:
    """A part of the store; see `store.gating`."""

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def close_gate(self, spec: GateSpec) -> Gate:
        check_gate(spec)
        return await self._write(lambda session: gating.close_gate(session, spec))

    async def open_gate(self, gate_id: UUID) -> None:
        await self._write(lambda session: gating.open_gate(session, gate_id))

    async def gates(self) -> list[Gate]:
        return await self._read(gating.gates)

    async def tend_gates(self) -> int:
        return await self._write(gating.tend_gates)
