"""The log on standard error: text for people, or one JSON object a line for programs.

    {"time": "2026-01-01T00:00:00.000Z", "level": "INFO", "logger": "service.server",
     "message": "ready"}

with `request_id`, `trace_id` and `span_id` where a request was the reason, `exception` where
there was one, and the `fields` that whoever logs gives in `extra`. All loggers of the process
come out like this, uvicorn's and Python's warnings too.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from service import tracing


def set_up_logging(log_format: Literal["auto", "text", "json"]) -> None:
    """Write everything from INFO on; auto is text where standard error is a terminal."""
    text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(True)


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON, all of it ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
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
    """A record as a line of text, its fields behind the message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, _: str | None = None) -> str:  # noqa: N802
        """UTC, as in JSON."""
        return _time(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line without an exception."""
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return super().formatMessage(record) + fields


def _time(record: logging.LogRecord) -> str:
    """RFC 3339, UTC."""
    told = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return told.replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    trace = tracing.current()
    fields: dict[str, Any] = getattr(record, "fields", {})
    return {**(trace.ids() if trace else {}), **fields}
