"""Sending messages: signed webhooks, and services such as e-mail and chat."""

from tidewheel.notify.address import AddressGuard
from tidewheel.notify.sender import Sender
from tidewheel.notify.service import check_address

__all__ = ["AddressGuard", "Sender", "check_address"]
