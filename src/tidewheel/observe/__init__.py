"""What operators see: numbers in the text format of Prometheus.

It is a page of text, so there is no library for it: counters and histograms are dictionaries, and what is asked of
the store is asked when someone looks. Any process may have a `Registry`; what it counted can be sent to another one,
added to what others counted (`merged`) and shown (`page`). Which metrics there are stands in `catalogue`.
"""

from tidewheel.observe.metrics import (
    MEDIA_TYPE,
    Counter,
    Described,
    Histogram,
    Numbers,
    Registry,
    Row,
    merged,
    page,
)

__all__ = ["MEDIA_TYPE", "Counter", "Described", "Histogram", "Numbers", "Registry", "Row", "merged", "page"]
