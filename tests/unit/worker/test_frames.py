import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.worker.launcher.frames import MAX_FRAME, Frames, TooLong, frame, read_frames


@given(st.lists(st.binary(max_size=300)), st.integers(1, 50))
def test_frames_come_out_as_they_went_in_however_they_are_cut(messages: list[bytes], size: int) -> None:
    stream = b"".join(map(frame, messages))
    frames = Frames()

    assert [
        found for start in range(0, len(stream), size) for found in frames.feed(stream[start : start + size])
    ] == messages


def test_a_frame_that_claims_to_be_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(TooLong):
        list(Frames().feed(struct.pack("!I", MAX_FRAME + 1)))


def test_frames_are_read_one_after_the_other_until_the_other_side_closes() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(frame(b"one") + frame(b"") + frame(b"three")[:5])
            ours.sendall(frame(b"three")[5:])
        assert list(read_frames(theirs)) == [b"one", b"", b"three"]
