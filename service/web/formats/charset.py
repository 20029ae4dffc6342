"""Lines of text in other encodings than UTF-8, as spreadsheets export them.

    Content-Type: text/csv; charset=windows-1252

UTF-16 is recognised by its byte order mark, too. Nothing else is guessed.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder

from wolfstream.service.errors import TooLarge, Unreadable

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s\";]{1,40})", re.IGNORECASE)
_UTF8 = frozenset(("utf-8", "utf8", "us-ascii", "ascii"))
# How many bytes in UTF-8 a byte of another charset may be.
MOST_GROWTH = 3
# How much is converted at once: as text of Python, it takes up to four times as much.
_PART_BYTES = 1 << 18
# Charsets and the names of their codecs. Some others of Python's codecs are slow or unpack bodies.
_CODECS = {f"windows-125{k}": f"cp125{k}" for k in range(9)}
_CODECS |= {f"iso-8859-{k}": f"iso8859-{k}" for k in (*range(1, 12), *range(13, 17))}
_CODECS |= {"latin1": "iso8859-1", "macintosh": "mac-roman", "shift_jis": "cp932", "gbk": "gb18030"}
_CODECS |= {name: name for name in ("utf-16", "utf-16le", "utf-16be", "koi8-r", "big5", "gb18030")}
_CODECS |= {name: name for name in ("euc-jp", "euc-kr")}


def text_in_utf8(body: bytes, content_type: str | None, max_bytes: int) -> bytes:
    """Return a body of text in UTF-8, in which it may be MOST_GROWTH times as long.

    Args:
        body: the body as it was sent.
        content_type: the header `Content-Type`, which may name another charset.
        max_bytes: the limit on the result.

    Raises TooLarge, Unreadable.
    """
    named = _CHARSET.search(content_type or "")
    charset = "utf-8" if named is None else named[1].lower()
    if charset in _UTF8 and body[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        charset = "utf-16"
    if charset in _UTF8:
        return body
    if charset not in _CODECS:
        charsets = ", ".join(["utf-8", *_CODECS])
        raise Unreadable(f"the charset {charset!r} is not known; send one of {charsets}")
    decoder = getincrementaldecoder(_CODECS[charset])()
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
        raise Unreadable(f"the body is not text in {charset}: {error}") from None
    return bytes(converted)
