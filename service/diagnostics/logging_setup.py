"""The log on standard error: text for people, or one JSON object a line for programs.

    2026-01-01 00:00:00 INFO ready: open http://127.0.0.1:8000

    {"time": "2026-01-01T00:00:00.000Z", "level": "INFO", "logger": "wolfstream.service.web.server",
     "message": "ready: open http://127.0.0.1:8000"}

Text has the local time, JSON that of UTC. Both have `request_id`, `trace_id` and `span_id` of the
request that caused it, the exception if there was one, and the `fields` that the caller passes in
`extra`. This is the format of all loggers of the process, uvicorn's and Python's warnings included.
"""

import json
import logging
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from wolfstream.service.diagnostics import tracing
from wolfstream.service.errors.visible_text import visible

# uvicorn's logger of all that is wrong with a connection.
_CONNECTIONS = "uvicorn.error"


def set_up_logging(log_format: Literal["auto", "text", "json"]) -> None:
    """Log everything from INFO on; `auto` means text if standard error is a terminal."""
    text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    handler.addFilter(LineLimit(100, of_connections=10))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(True)


class LineLimit(logging.Filter):
    """Lets so many lines of each kind pass within a second; the next one has those `left_out`.

    What one place in the code logs is of one kind, and so is all that uvicorn says of connections,
    of which clients cause as many lines as they like. A text that was not UTF-8 is no defect of the
    server, whose place would have to be known. Lines with `unlimited` always pass.
    """

    def __init__(self, lines_a_second: int, of_connections: int) -> None:
        super().__init__()
        self._most, self._most_of_connections = lines_a_second, of_connections
        self._lock = threading.Lock()
        self._kinds = dict[tuple[str, int], _Second]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        of_connections = record.name == _CONNECTIONS
        error = record.exc_info[1] if record.exc_info else None
        if of_connections and isinstance(error, UnicodeDecodeError):
            record.exc_info = None
        if getattr(record, "unlimited", False):
            return True
        kind = record.name, 0 if of_connections else record.lineno
        most = self._most_of_connections if of_connections else self._most
        with self._lock:
            second = self._kinds.setdefault(kind, _Second())
            if record.created - second.began >= 1.0:
                second.began, second.lines = record.created, 0
            second.lines += 1
            if second.lines > most:
                second.left_out += 1
                return False
            left_out, second.left_out = second.left_out, 0
        if left_out:
            record.fields = {**getattr(record, "fields", {}), "left_out": left_out}
        return True


@dataclass
class _Second:
    """What was logged of a kind since a second began, and left out since the last line."""

    began: float = 0.0
    lines: int = 0
    left_out: int = 0


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

    What a terminal would not show but interpret, such as an escape sequence or a line break, is
    shown as Python writes it, so no text of a client can pass for a line of the server.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line without an exception."""
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return visible(super().formatMessage(record).rstrip("\n") + fields)

    def formatException(self, exc_info: Any) -> str:  # noqa: N802
        """Return the traceback, in lines of which each begins with white space.

        An exception's message may have line breaks of its own.
        """
        lines = super().formatException(exc_info).split("\n")
        return "\n".join(f"  {visible(line)}" for line in lines)


def _time(record: logging.LogRecord) -> str:
    """Return the time of a record as RFC 3339 has it, in UTC."""
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return time.replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    trace = tracing.current()
    fields: dict[str, Any] = getattr(record, "fields", {})
    return {**(trace.ids() if trace else {}), **fields}
