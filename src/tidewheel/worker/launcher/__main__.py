"""`python -m tidewheel.worker.launcher`, as the host starts it."""

import sys

from tidewheel.worker.launcher.server import main

main(sys.argv[1:])
