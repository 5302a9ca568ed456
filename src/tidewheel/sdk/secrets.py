"""Secrets as arguments."""

from typing import Any

from tidewheel.model.secret import reference_to


def secret(name: str) -> Any:
    """Stand for a secret in arguments, in `env` and `headers`: `charge.enqueue(7, key=secret("stripe_key"))`.

    What is stored is the name. The worker puts the text in right before the task gets its arguments.
    """
    return reference_to(name)
