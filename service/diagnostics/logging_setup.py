"""The log on standard error: text for people, or one JSON object a line for programs.

    {"time": "2026-01-01T00:00:00.000Z", "level": "INFO", "logger": "wolfstream.service.web.server",
     "message": "ready"}

It has `request_id`, `trace_id` and `span_id` of the request that caused it, `exception` if there
was one, and the `fields` that the caller passes in `extra`. This is the format of all loggers of
the process, uvicorn's and Python's warnings included.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from wolfstream.service.diagnostics import tracing
from wolfstream.service.errors.visible_text import visible


def set_up_logging(log_format: Literal["auto", "text", "json"]) -> None:
    """Log everything from INFO on; `auto` means text if standard error is a terminal."""
    text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(True)
    logging.getLogger("uvicorn.error").addFilter(_OF_CONNECTIONS)


class ConnectionLines(logging.Filter):
    """What uvicorn says of connections, of which clients cause as many lines as they like.

    At most `lines_a_second` pass; the next one has the number of those `left_out`. A text that was
    not UTF-8 is no defect of the server, whose place would have to be known.
    """

    def __init__(self, lines_a_second: int) -> None:
        super().__init__()
        self._most = lines_a_second
        self._second, self._lines, self._left_out = 0.0, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        if record.created - self._second >= 1.0:
            self._second, self._lines = record.created, 0
        self._lines += 1
        if self._lines > self._most:
            self._left_out += 1
            return False
        if record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError):
            record.exc_info = None
        if self._left_out:
            record.fields = {"left_out": self._left_out}
            self._left_out = 0
        return True


_OF_CONNECTIONS = ConnectionLines(10)


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
    """Formats a record as a line of text, with its fields after the message.

    What a terminal would not show but interpret, such as an escape sequence or a line break, is
    shown as Python writes it, so no text of a client can pass for a line of the server.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, _: str | None = None) -> str:  # noqa: N802
        """Return the time in UTC, as in JSON."""
        return _time(record)

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
