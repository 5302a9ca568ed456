"""`python -m tidewheel`, for where the command `tide` is not on the path."""

from tidewheel.cli.main import main

main()
