"""What operators see: numbers in the text format of Prometheus.

It is a page of text, so there is no library for it: counters and histograms are dictionaries, and what is asked of
the store is asked when someone looks. Any process may have a `Registry` and show it.
"""

from tidewheel.observe.metrics import MEDIA_TYPE, Counter, Histogram, Registry, Sample, gauge

__all__ = ["MEDIA_TYPE", "Counter", "Histogram", "Registry", "Sample", "gauge"]
