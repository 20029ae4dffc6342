"""Compressed bodies: gzip, which every client has, and zstd, which costs clients far less time."""

import zlib
from collections.abc import Callable

import zstandard

from service.errors import TooLarge, Unreadable, UnsupportedFormat

ACCEPTED = "gzip, zstd"
# zlib's number for a window of 32 kB with gzip's header and checksum around it.
_GZIP_WINDOW = 31
# The most that the content encoding allows (RFC 9659); a frame may ask its reader for 2 GB.
_ZSTD_WINDOW_BYTES = 8 << 20
_ZSTD_FRAMES = 64
_SCRATCH_BYTES = 1 << 17

Unpack = Callable[[bytes, int], bytes]


def unpacking_of(content_encoding: str | None) -> Unpack | None:
    """What unpacks a body, if it is packed. Raises UnsupportedFormat."""
    encoding = (content_encoding or "identity").strip().lower()
    if encoding == "identity":
        return None
    unpack = _UNPACK.get(encoding)
    if unpack is None:
        raise UnsupportedFormat(f"bodies may be packed with {ACCEPTED}, not {encoding[:40]!r}")
    return unpack


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
        raise _too_large(most_bytes)
    if not stream.eof:
        raise Unreadable("the gzip body ends too early")
    if stream.unused_data:
        raise Unreadable("the gzip body has something behind its end; send one member")
    return content


def decompress_zstd(data: bytes, most_bytes: int) -> bytes:
    """A zstd body's content, never more of it than allowed. Raises Unreadable, TooLarge.

    Up to 64 frames, one after another. The size is found first: of the library's interfaces
    one bounds what comes out, another tells whether a frame is whole.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    parts = []
    try:
        _check_size(decompressor, data, most_bytes)
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


def _check_size(decompressor: zstandard.ZstdDecompressor, data: bytes, most_bytes: int) -> None:
    scratch = bytearray(_SCRATCH_BYTES)
    size = 0
    with decompressor.stream_reader(data, read_across_frames=True) as reader:
        while read := reader.readinto(scratch):
            size += read
            if size > most_bytes:
                raise _too_large(most_bytes)


def _too_large(most_bytes: int) -> TooLarge:
    return TooLarge(f"a body may have {most_bytes} bytes unpacked; send smaller batches")


_UNPACK: dict[str, Unpack] = {"gzip": inflate, "x-gzip": inflate, "zstd": decompress_zstd}
