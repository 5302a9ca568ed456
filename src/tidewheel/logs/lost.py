"""Lines that found no room on their way, and those that stand for them."""

from tidewheel.model.log_piece import Piece, mark_of, pieces_of_run


class Mark(Piece):
    """A line that stands for others, which are lost."""


class Dropped:
    """Lines of a run that found no room."""

    def __init__(self, first: Piece) -> None:
        self.first = first
        self.lines = 0

    def mark(self, at: float) -> Piece:
        """Return the line that stands for them; it takes the number of the first."""
        text = f"[… {self.lines} lines lost: the log did not keep up, or was refused …]"
        run = self.first
        (piece,) = pieces_of_run(
            run.job_id, run.token, run.first, [round(at * 1e6), mark_of("system", None), text], run.lane
        )
        return Mark(*piece)
