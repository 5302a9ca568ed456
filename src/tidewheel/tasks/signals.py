"""What a task raises to steer itself. These are answers, not errors of Tidewheel."""

from datetime import timedelta


class Retry(Exception):
    """Try this job again, if its policy allows one more attempt, after a wait of its own choice or the policy's."""

    def __init__(self, message: str = "", *, after: timedelta | str | float | None = None) -> None:
        """Take a message for whoever reads the attempt, and the wait as a timedelta, a text like `5m`, or seconds."""
        super().__init__(message)
        self.after = after


class Fatal(Exception):
    """Give this job up at once: another attempt cannot help."""
