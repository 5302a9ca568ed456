"""Where large things live: artifacts that tasks need, results too large for a row, and files that runs leave behind.

Everything is an object under a key, in a folder or in an S3 bucket:

    sha256/ab/cdef…                      an artifact, named by its content; never changes
    uploads/<until>-<random>             what arrives by an address that we signed, until it was looked at
    outputs/<job>/<token>/result.json    a large result of one run
    outputs/<job>/<token>/files/<name>   a file that a run left behind

A write is whole or not there at all, and on the disk when the call returns. Elsewhere an object is named by a location,
`blob:` and its key, which says nothing about where the bytes are or how one gets at them.
"""

from tidewheel.blobs.blobs import Blobs
from tidewheel.blobs.cache import ArtifactCache
from tidewheel.blobs.exchange import Exchange
from tidewheel.blobs.names import Digest, Output, check_digest
from tidewheel.blobs.opening import open_blobs

__all__ = ["ArtifactCache", "Blobs", "Digest", "Exchange", "Output", "check_digest", "open_blobs"]
