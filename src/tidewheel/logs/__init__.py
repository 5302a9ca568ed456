"""What runs print and log, from raw bytes to bounded batches of clean lines for the store.

    output, log  →  RunLog: lines, masks, quota, numbers  →  LogShipper: batches  →  append (the store)

Nothing here blocks or fails a run. What does not fit is left out, and a line says so.
"""

from tidewheel.logs.handler import RunHandler
from tidewheel.logs.run_log import RunLog
from tidewheel.logs.shipper import LogShipper

__all__ = ["LogShipper", "RunHandler", "RunLog"]
