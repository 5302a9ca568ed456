"""Stored secrets: given a text, listed without it, and removed. What they stand for is told to workers alone."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from tidewheel.model.secret import MAX_SECRET
from tidewheel.model.stored_secret import SecretList
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.service import Service

NO_CONTENT: Final = 204


class SecretRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a secret stands for."""

    value: Annotated[str, Meta(max_length=MAX_SECRET)]
    """The text: at least four characters, at most 64 KiB. No answer ever has it."""

    def __repr__(self) -> str:
        """Leave out what must not be seen."""
        return "SecretRequest(…)"


async def put(service: Service, call: Call[SecretRequest, NoQuery]) -> Answer:
    """Give a secret its text; the store writes down who did."""
    name, text = call.path["name"], call.body.value
    return Answer(await service.store.set_secret(name, text, tenant=call.tenant, by=call.actor))


async def find(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the secrets of a tenant, without their texts."""
    return Answer(SecretList(secrets=await service.store.stored_secrets(tenant=call.tenant)))


async def remove(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Remove a secret."""
    await service.store.remove_secret(call.path["name"], tenant=call.tenant, by=call.actor)
    return Answer(None, NO_CONTENT)


async def rotate(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Encrypt secrets by the first key of this server, of one tenant or of all."""
    return Answer(await service.store.rotate_secrets(tenant=call.scope, by=call.actor))
