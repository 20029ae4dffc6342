"""The errors of JetStream that the stand-in can answer with."""

from typing import Any, NamedTuple


class ApiError(NamedTuple):
    """An error as the server describes it.

    status: like that of HTTP. code: JetStream's own number.
    """

    status: int
    code: int
    description: str

    @property
    def content(self) -> dict[str, Any]:
        """Return the error as answers contain it."""
        return {"code": self.status, "err_code": self.code, "description": self.description}


class ApiRefusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.description)
        self.error = error


BAD_REQUEST = ApiError(400, 10003, "bad request")
CONSUMER_NOT_FOUND = ApiError(404, 10014, "consumer not found")
NO_MESSAGE = ApiError(404, 10037, "no message found")
NO_STORAGE = ApiError(500, 10047, "insufficient storage resources available")
MESSAGE_TOO_LARGE = ApiError(400, 10054, "message size exceeds maximum allowed")
NAME_MISMATCH = ApiError(400, 10056, "stream name in subject does not match request")
NAME_IN_USE = ApiError(400, 10058, "stream name already in use with a different configuration")
STREAM_NOT_FOUND = ApiError(404, 10059, "stream not found")
OTHER_STREAM = ApiError(400, 10060, "expected stream does not match")
SUBJECTS_OVERLAP = ApiError(400, 10065, "subjects overlap with an existing stream")
NOT_CLUSTERED = ApiError(500, 10074, "replicas > 1 not supported in non-clustered mode")
BYTES_EXCEEDED = ApiError(503, 10077, "maximum bytes exceeded")
NO_ROLLUP = ApiError(500, 10111, "rollup not permitted")
WRONG_LAST_UNKNOWN = ApiError(400, 10164, "wrong last sequence")
BATCH_DISABLED = ApiError(400, 10174, "atomic publish is disabled")
BATCH_WITHOUT_SEQUENCE = ApiError(400, 10175, "atomic publish sequence is missing")
BATCH_INCOMPLETE = ApiError(400, 10176, "atomic publish batch is incomplete")
BATCH_ID_INVALID = ApiError(400, 10179, "atomic publish batch ID is invalid")
BATCH_COMMIT_INVALID = ApiError(400, 10200, "atomic publish batch commit is invalid")
BATCH_DUPLICATE = ApiError(400, 10201, "atomic publish batch contains duplicate message id")
TOO_MANY_BATCHES = ApiError(429, 10210, "atomic publish too many inflight")


def wrong_last(sequence: int) -> ApiError:
    """Return the error for another last sequence than the expected one."""
    return ApiError(400, 10071, f"wrong last sequence: {sequence}")


def sequence_not_found(sequence: int) -> ApiError:
    """Return the error for a message that is gone while earlier ones are there."""
    return ApiError(400, 10043, f"sequence {sequence} not found")


def delete_failed(reason: str) -> ApiError:
    """Return the error for a message that cannot be deleted."""
    return ApiError(500, 10057, reason)


def batch_too_large(most: int) -> ApiError:
    """Return the error for a batch of too many messages."""
    return ApiError(400, 10199, f"atomic publish batch is too large: {most}")


def batch_header(name: str) -> ApiError:
    """Return the error for a header that batches may not have."""
    return ApiError(400, 10177, f"atomic publish unsupported header used: {name}")


def rollup_failed(reason: str) -> ApiError:
    """Return the error for a message that may not replace others."""
    return ApiError(500, 10111, reason)
