"""Decompresses request bodies: gzip, which all clients support, and zstd, which is far faster."""

import zlib
from collections.abc import Callable

import zstandard

from wolfstream.service.errors import TooLarge, Unreadable, UnsupportedFormat

ACCEPTED = "gzip, zstd"
# zlib's number for a 32 kB window with the header and checksum of gzip.
_GZIP_WINDOW = 31
# The largest window that RFC 9659 allows; without a bound, a frame may require 2 GB.
_ZSTD_WINDOW_BYTES = 8 << 20
_ZSTD_FRAMES = 64
_SCRATCH_BYTES = 1 << 17

Decompress = Callable[[bytes, int], bytes]


def decompressor_of(content_encoding: str | None) -> Decompress | None:
    """Return the function that decompresses a body; None if it is not compressed.

    Raises UnsupportedFormat.
    """
    encoding = (content_encoding or "identity").strip().lower()
    if encoding == "identity":
        return None
    decompress = _DECOMPRESS.get(encoding)
    if decompress is None:
        raise UnsupportedFormat(
            f"content encoding {encoding[:40]!r} is not supported; use {ACCEPTED}"
        )
    return decompress


def inflate(data: bytes, max_bytes: int) -> bytes:
    """Decompress gzip; stop at `max_bytes`. Raises Unreadable, TooLarge.

    Only a single member is accepted: for each of many empty ones, the rest of the body would be
    copied.
    """
    stream = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = stream.decompress(data, max_bytes + 1)
    except zlib.error as error:
        raise Unreadable(f"the body is not gzip: {error}") from None
    if len(content) > max_bytes:
        raise _too_large(max_bytes)
    if not stream.eof:
        raise Unreadable("the gzip body ends too early")
    if stream.unused_data:
        raise Unreadable("the gzip body has bytes after its end; send one member")
    return content


def decompress_zstd(data: bytes, max_bytes: int) -> bytes:
    """Decompress zstd of up to 64 frames, to at most `max_bytes`. Raises Unreadable, TooLarge.

    The body is decompressed twice, the first time only to measure it: one interface of the library
    can bound the output, but only another one shows whether a frame is complete.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    parts = []
    try:
        _check_size(decompressor, data, max_bytes)
        for _ in range(_ZSTD_FRAMES):
            frame = decompressor.decompressobj()
            parts.append(frame.decompress(data))
            if not frame.eof:
                raise Unreadable("the zstd body ends too early")
            data = frame.unused_data
            if not data:
                return b"".join(parts)
    except zstandard.ZstdError as error:
        most = f"a frame's window may have {_ZSTD_WINDOW_BYTES >> 20} MB"
        raise Unreadable(f"the body is not zstd: {error}; {most}") from None
    raise Unreadable(f"the zstd body has more than {_ZSTD_FRAMES} frames; send one")


def _check_size(decompressor: zstandard.ZstdDecompressor, data: bytes, max_bytes: int) -> None:
    scratch = bytearray(_SCRATCH_BYTES)
    size = 0
    with decompressor.stream_reader(data, read_across_frames=True) as reader:
        while read := reader.readinto(scratch):
            size += read
            if size > max_bytes:
                raise _too_large(max_bytes)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"a body may have at most {max_bytes} bytes unpacked; send smaller batches")


_DECOMPRESS: dict[str, Decompress] = {"gzip": inflate, "x-gzip": inflate, "zstd": decompress_zstd}
