"""Sending messages: signed webhooks, and services such as e-mail and chat."""

from tidewheel.notify.address import AddressGuard
from tidewheel.notify.sender import Sender

__all__ = ["AddressGuard", "Sender"]
