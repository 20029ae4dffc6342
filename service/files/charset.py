"""Text in other encodings than UTF-8, as spreadsheets export it.

UTF-16 is recognised by its byte order mark. Other charsets must be named, as a header or an option
does: nothing is guessed.
"""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import NamedTuple, TextIO

from wolfstream.service.files.text import DataFileError

UTF16_MARKS = (BOM_UTF16_LE, BOM_UTF16_BE)
_UTF8 = frozenset(("utf-8", "utf8", "utf-8-sig", "us-ascii", "ascii"))
# Charsets and the names of their codecs. Some others of Python's codecs are slow or unpack bodies.
_CODECS = {f"windows-125{k}": f"cp125{k}" for k in range(9)}
_CODECS |= {f"iso-8859-{k}": f"iso8859-{k}" for k in (*range(1, 12), *range(13, 17))}
_CODECS |= {"latin1": "iso8859-1", "macintosh": "mac-roman", "shift_jis": "cp932", "gbk": "gb18030"}
_CODECS |= {name: name for name in ("utf-16", "utf-16le", "utf-16be", "koi8-r", "big5", "gb18030")}
_CODECS |= {name: name for name in ("euc-jp", "euc-kr")}
# Other names of these: as Python and databases write them.
_OTHER_NAMES = {codec: codec for codec in _CODECS.values()}
_OTHER_NAMES |= {f"windows{codec[2:]}": codec for codec in _CODECS.values() if codec[:4] == "cp12"}
_OTHER_NAMES |= {"latin-1": "iso8859-1", "shift-jis": "cp932", "sjis": "cp932"}


def codec_of(charset: str | None, begin: bytes) -> str | None:
    """Return the name of the codec of a text; None if it is in UTF-8. Raises DataFileError.

    Args:
        charset: what the text is said to be in; None for UTF-8, or UTF-16 with its mark.
        begin: the first bytes of the text.
    """
    name = "utf-8" if charset is None else charset.lower()
    if name in _UTF8:
        return "utf-16" if begin[:2] in UTF16_MARKS else None
    dashed = name.replace("_", "-")
    codec = _CODECS.get(name) or _CODECS.get(dashed) or _OTHER_NAMES.get(dashed)
    if codec is None:
        charsets = ", ".join(["utf-8", *_CODECS])
        raise DataFileError(f"the charset {name[:40]!r} is not known; use one of {charsets}")
    return codec


class TextFile(NamedTuple):
    """A text file in any charset that can be opened repeatedly.

    Attributes:
        path: the path of the file.
        charset: see `codec_of`.
    """

    path: Path
    charset: str | None = None

    def open(self, *, encoding: str, newline: str | None = None) -> TextIO:
        """Return the text; `encoding` is that of a file in UTF-8. Raises DataFileError, OSError."""
        with self.path.open("rb") as file:
            codec = codec_of(self.charset, file.read(2))
        return self.path.open(encoding=codec or encoding, newline=newline)
