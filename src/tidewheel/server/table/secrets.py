"""Endpoints of stored secrets."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.model.stored_secret import Rotation, SecretList, StoredSecret
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import secrets

_GROUP: Final = "secrets"

SECRETS: Final = (
    Endpoint(
        method="GET",
        path="/v1/secrets",
        name="list_secrets",
        summary="List the stored secrets of a tenant, without their texts",
        group=_GROUP,
        action=Action.SECRETS_READ,
        handler=secrets.find,
        answers={200: SecretList},
    ),
    Endpoint(
        method="PUT",
        path="/v1/secrets/{name}",
        name="set_secret",
        summary="Give a secret its text, whether it had one or not",
        description="Jobs that name it get the text from their next run on. No answer ever has it.",
        group=_GROUP,
        action=Action.SECRETS_WRITE,
        handler=secrets.put,
        body=secrets.SecretRequest,
        answers={200: StoredSecret},
        errors=("conflict", "secrets-locked"),
    ),
    Endpoint(
        method="DELETE",
        path="/v1/secrets/{name}",
        name="remove_secret",
        summary="Remove a secret",
        description="Jobs that name it fail, unless their worker has it by other means.",
        group=_GROUP,
        action=Action.SECRETS_WRITE,
        handler=secrets.remove,
        answers={204: None},
    ),
    Endpoint(
        method="POST",
        path="/v1/secret-rotations",
        name="rotate_secrets",
        summary="Encrypt stored secrets by the first key of the server",
        description="With `Tide-Tenant: *` those of all tenants. May be repeated.",
        group=_GROUP,
        action=Action.SECRETS_WRITE,
        handler=secrets.rotate,
        answers={200: Rotation},
        errors=("secrets-locked",),
        seconds=600.0,
    ),
)
