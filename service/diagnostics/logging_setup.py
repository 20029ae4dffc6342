"""The log on standard error: text for people, or one JSON object a line for programs.

    2026-01-01 00:00:00 INFO ready: open http://127.0.0.1:8000

    {"time": "2026-01-01T00:00:00.000Z", "level": "INFO", "logger":
     "wolfstream.service.server.main_process", "message": "ready: open http://127.0.0.1:8000"}

Text has the local time, JSON has UTC. Both have `request_id`, `trace_id` and `span_id` of the
request that caused the line, an exception if there was one, and the `fields` that the caller passes
in `extra`. All loggers of the process write like this, including uvicorn's and Python's warnings.
"""

import json
import logging
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from wolfstream.service.diagnostics import tracing
from wolfstream.service.errors import visible

# uvicorn's logger for problems with connections.
_CONNECTIONS = "uvicorn.error"


def set_up_logging(log_format: Literal["auto", "text", "json"]) -> None:
    """Log records of level INFO and above to standard error.

    Args:
        log_format: `auto` means text if standard error is a terminal, else JSON.
    """
    text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    handler.addFilter(LineLimit(100, connection_lines=10))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(True)


class LineLimit(logging.Filter):
    """Limits the lines per second from each place in the code.

    The next line that passes has a field `left_out`: how many lines before it did not pass. All
    lines of uvicorn about connections count as one place, because clients can cause any number of
    them. Records with the attribute `unlimited` always pass.
    """

    def __init__(self, lines: int, connection_lines: int) -> None:
        """Begin with nothing logged.

        Args:
            lines: per second, from each place in the code.
            connection_lines: per second, from uvicorn about connections.
        """
        super().__init__()
        self._lines, self._connection_lines = lines, connection_lines
        self._lock = threading.Lock()
        self._seconds = dict[tuple[str, int], _Second]()  # (logger, line of code) -> its lines

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        is_connection = record.name == _CONNECTIONS
        error = record.exc_info[1] if record.exc_info else None
        if is_connection and isinstance(error, UnicodeDecodeError):
            record.exc_info = None  # a client's text that is not UTF-8: no traceback needed
        if getattr(record, "unlimited", False):
            return True
        place = record.name, 0 if is_connection else record.lineno
        limit = self._connection_lines if is_connection else self._lines
        with self._lock:
            second = self._seconds.setdefault(place, _Second())
            if not 0.0 <= record.created - second.began < 1.0:  # below 0: the clock was put back
                second.began, second.lines = record.created, 0
            second.lines += 1
            if second.lines > limit:
                second.left_out += 1
                return False
            left_out, second.left_out = second.left_out, 0
        if left_out:
            record.fields = {**getattr(record, "fields", {}), "left_out": left_out}
        return True


@dataclass
class _Second:
    """The lines from one place in the present second."""

    began: float = 0.0
    lines: int = 0
    left_out: int = 0  # since the last line that passed


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """Formats a record as a line of text: local time, level, message and fields.

    Characters that a terminal would interpret, such as escape sequences and line breaks, are
    escaped as in Python, so that no text from a client can look like a line of the server.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line without an exception."""
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return visible(super().formatMessage(record).rstrip("\n") + fields)

    def formatException(self, exc_info: Any) -> str:  # noqa: N802
        """Return the traceback with all lines indented, also those of an exception's message.

        So none of them can look like a line of the server.
        """
        lines = super().formatException(exc_info).split("\n")
        return "\n".join(f"  {visible(line)}" for line in lines)


def _time(record: logging.LogRecord) -> str:
    """Return the time of a record in UTC, in the format of RFC 3339."""
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return time.replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    trace = tracing.current()
    fields: dict[str, Any] = getattr(record, "fields", {})
    return {**(trace.ids() if trace else {}), **fields}
