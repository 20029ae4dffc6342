"""Files of other programs, which are neither text nor a table that is read, told by their bytes."""

from pathlib import Path

from wolfstream.service.files.text import DataFileError

LONGEST_MARK = 16
"""The most bytes by which a format is told."""

GZIP_MARK = b"\x1f\x8b"
_UNPACK = "is compressed: unpack it first"
_EXPORT = "save it as CSV there (in a spreadsheet: CSV UTF-8)"
# Tables that a browser has saved, and those of some programs that call them .xls.
_MARKUP = (b"<html", b"<HTML", b"<!DOCTYPE", b"<!doctype", b"<table", b"<?xml")
# The first bytes of a file, and what to say about it.
_FORMATS = (
    (GZIP_MARK, f"{_UNPACK}, as with gunzip"),
    (b"\x28\xb5\x2f\xfd", f"{_UNPACK}, as with zstd -d"),
    (b"BZh", f"{_UNPACK}, as with bunzip2"),
    (b"\xfd7zXZ", f"{_UNPACK}, as with unxz"),
    (b"PK\x03\x04", f"is a spreadsheet or another archive: {_EXPORT}, or unpack it"),
    (b"\xd0\xcf\x11\xe0", f"is a spreadsheet or document of an office program: {_EXPORT}"),
    (b"SQLite format 3", "is a database of SQLite: export the table as CSV"),
    (b"\x89HDF", "is HDF5: write the table as CSV or Parquet"),
    (b"%PDF", "is a PDF: data files are CSV, NDJSON, svmlight, npz, Parquet or Arrow"),
    *((mark, f"is a web page or XML: {_EXPORT}") for mark in _MARKUP),
    (b"\x93NUMPY", "is one array of numpy: write an npz file with arrays X and y"),
    (b"\x80\x04\x95", "is a pickle, which is not read: write the table as CSV or Parquet"),
    (b"\x80\x05\x95", "is a pickle, which is not read: write the table as CSV or Parquet"),
)


def refuse_foreign(path: Path) -> None:
    """Raise DataFileError, with what to do, for a file of another program. Raises OSError."""
    with path.open("rb") as file:
        detail = foreign_format(file.read(LONGEST_MARK))
    if detail:
        raise DataFileError(detail)


def foreign_format(begin: bytes) -> str:
    """Return what a file of another program is, and what to do; "" for any other file.

    Args:
        begin: its first LONGEST_MARK bytes, or more.
    """
    return next((detail for mark, detail in _FORMATS if begin.startswith(mark)), "")
