"""The words of messages for people: templates with a few names, checked when they are given and filled without fail."""

from collections.abc import Mapping
from string import Template
from typing import Final

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_text, clean_text
from tidewheel.model.harmless_text import clean_lines

MAX_TEMPLATE: Final = 2000
MAX_TEXT: Final = 4000
NAMES: Final = ("event", "meaning", "tenant", "kind", "queue", "schedule", "job_id", "at", "error", "detail")
"""What a template may name, as `$kind` or `${kind}`; `$$` is a dollar."""


def check_template(field: str, text: object) -> str:
    """Return a template that can be filled whatever happens."""
    template = Template(check_text(field, text, MAX_TEMPLATE))
    if not template.is_valid():
        raise Invalid(field, "has a $ that no name follows; write $$ for a dollar")
    for name in template.get_identifiers():
        if name not in NAMES:
            raise Invalid(field, f"must name only {', '.join(NAMES)}, not {name[:40]!r}")
    return template.template


def fill(text: str, words: Mapping[str, str]) -> str:
    """Return the words of a message."""
    filled = Template(text).safe_substitute(words) if text else _usual(words)
    return clean_text(clean_lines(filled), MAX_TEXT)


def _usual(words: Mapping[str, str]) -> str:
    whom = [words["kind"] and f"{words['kind']}", words["schedule"] and f"schedule {words['schedule']}"]
    about = ", ".join(part for part in whom if part) or "tidewheel"
    lines = [
        f"{about}: {words['event']}",
        f"{words['meaning']} ({words['at']})",
        words["detail"],
        words["error"],
        words["job_id"] and f"job {words['job_id']}, tenant {words['tenant']}",
    ]
    return "\n".join(line for line in lines if line)
