"""Who comes in, how often, how much they may bring, and what is written down of it; nothing here knows HTTP.

Door.admit(key, address) ──▶ Admitted(actor, allowance)       the one place where an actor comes from
KeyRing        recognises keys, remembers them for half a second, slows down whoever guesses
Throttle       buckets of requests, in memory
Quotas.check     how many jobs a tenant may have, and how large
AuditRecorder    what was changed, in batches, never lost in silence
Eraser           what is to be forgotten, from the store and the blobs
ensure_first_key, check_exposure, is_loopback    before the server opens
"""

from tidewheel.server.access.door import Admitted, Door, Keyless, token_of
from tidewheel.server.access.erasing import Eraser
from tidewheel.server.access.first_key import Auth, check_exposure, ensure_first_key, is_loopback
from tidewheel.server.access.key_ring import KeyRing
from tidewheel.server.access.quotas import Quotas
from tidewheel.server.access.recorder import AuditRecorder
from tidewheel.server.access.throttle import Throttle

__all__ = [
    "Admitted",
    "AuditRecorder",
    "Auth",
    "Door",
    "Eraser",
    "KeyRing",
    "Keyless",
    "Quotas",
    "Throttle",
    "check_exposure",
    "ensure_first_key",
    "is_loopback",
    "token_of",
]
