"""Bodies of text in other encodings than UTF-8, as spreadsheets export them.

Content-Type: text/csv; charset=windows-1252
"""

import re

from wolfstream.service.errors import Unreadable
from wolfstream.service.files.charset import codec_of
from wolfstream.service.files.text import DataFileError

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s\";]{1,40})", re.IGNORECASE)


def text_in_utf8(body: bytes, content_type: str | None) -> bytes:
    """Return a body of text in UTF-8.

    Args:
        body: the body as it was sent.
        content_type: the header `Content-Type`, which may name another charset.

    Raises Unreadable.
    """
    named = _CHARSET.search(content_type or "")
    try:
        codec = codec_of(None if named is None else named[1], body[:2])
        return body if codec is None else body.decode(codec).encode()
    except DataFileError as error:
        raise Unreadable(str(error)) from None
    except UnicodeError as error:
        raise Unreadable(f"the body is not text in {codec}: {error}") from None
