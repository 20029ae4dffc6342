"""Compressed bodies: gzip, which every client has.

Not zstd: it would be one more dependency for every Python before 3.14, for numbers that it packs
little better.
"""

import zlib

from service.errors import TooLarge, Unreadable, UnsupportedFormat

ACCEPTED = "gzip"
# zlib's number for a window of 32 kB with gzip's header and checksum around it.
_GZIP_WINDOW = 31


def is_gzipped(content_encoding: str | None) -> bool:
    """Whether a body has to be inflated. Raises UnsupportedFormat."""
    encoding = (content_encoding or "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise UnsupportedFormat(f"bodies may be packed with {ACCEPTED}, not {encoding[:40]!r}")
    return encoding != "identity"


def inflate(data: bytes, most_bytes: int) -> bytes:
    """A gzip body's content, never more of it than allowed. Raises Unreadable, TooLarge.

    One member only: each further one would be copied anew, quadratic in a body of empty ones.
    """
    stream = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = stream.decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise Unreadable(f"the body is not gzip: {error}") from None
    if len(content) > most_bytes:
        raise TooLarge(f"a body may have {most_bytes} bytes inflated; send smaller batches")
    if not stream.eof:
        raise Unreadable("the gzip body ends too early")
    if stream.unused_data:
        raise Unreadable("the gzip body has something behind its end; send one member")
    return content
