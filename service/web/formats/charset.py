"""Bodies of text in other encodings than UTF-8, as spreadsheets export them.

Content-Type: text/csv; charset=windows-1252
"""

import re
from codecs import getincrementaldecoder

from wolfstream.service.errors import TooLarge, Unreadable
from wolfstream.service.files.charset import codec_of
from wolfstream.service.files.text import DataFileError

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s\";]{1,40})", re.IGNORECASE)
# How many bytes in UTF-8 a byte of another charset may be.
MOST_GROWTH = 3
# How much is converted at once: as text of Python, it takes up to four times as much.
_PART_BYTES = 1 << 18


def text_in_utf8(body: bytes, content_type: str | None, max_bytes: int) -> bytes:
    """Return a body of text in UTF-8, in which it may be MOST_GROWTH times as long.

    Args:
        body: the body as it was sent.
        content_type: the header `Content-Type`, which may name another charset.
        max_bytes: the limit on the result.

    Raises TooLarge, Unreadable.
    """
    named = _CHARSET.search(content_type or "")
    try:
        codec = codec_of(None if named is None else named[1], body[:2])
    except DataFileError as error:
        raise Unreadable(str(error)) from None
    if codec is None:
        return body
    decoder = getincrementaldecoder(codec)()
    converted = bytearray()
    try:
        for begin in range(0, len(body), _PART_BYTES):
            end = begin + _PART_BYTES
            converted += decoder.decode(body[begin:end], final=end >= len(body)).encode()
            if len(converted) > max_bytes:
                raise TooLarge(
                    f"in UTF-8 a body may have at most {max_bytes} bytes; send smaller batches"
                )
    except UnicodeError as error:
        raise Unreadable(f"the body is not text in {codec}: {error}") from None
    return bytes(converted)
