"""The errors of a client, one for each outcome that its caller must tell from the others.

ClientError
├── Unreachable              there was no connection: nothing was sent
│   └── Unsuitable           the server is not trusted, or is not wolfstream
├── Refused                  the server responded with a problem: nothing was applied, unless its
│                            `outcome` says otherwise
├── AnswerLost               a request was sent and no response came: it may have been applied
│   └── TooLargeMessage      the server closed a stream because of a message
└── NotDone                  a job had not ended when the wait for it did

They are raised after retries have failed, or at once where a retry cannot help (`may_pass`).
"""

import ssl
from typing import Any

# Request timeout, quota exceeded, and temporary failures of servers and the proxies before them.
_TEMPORARY = {408, 429, 502, 503, 504}
# A server that asks for a pause of zero still gets one.
_SHORTEST_PAUSE = 0.05


class ClientError(Exception):
    """A call that failed.

    Attributes:
        acknowledged: how many samples of the call, or of the stream so far, the server has
            acknowledged; None if nothing was to be learned.
        idempotency_key: of the call. Repeat the call with this key to continue it: samples that
            were learned are not learned again.
    """

    acknowledged: int | None = None
    idempotency_key: str | None = None

    def __str__(self) -> str:
        text = super().__str__()
        if self.acknowledged is None:
            return text
        return f"{text}; {self.acknowledged:,} samples were acknowledged"


class Unreachable(ClientError):
    """There was no connection; nothing was sent."""


class AnswerLost(ClientError):
    """A request was sent and no response came: it may have been applied."""


class NotDone(ClientError):
    """A job had not ended when the wait for it did.

    Attributes:
        job: its description.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        super().__init__(f"job {job.get('job')} is still {job.get('status')}")


class Refused(ClientError):
    """The server refused a request; nothing of it was applied, unless `outcome` says otherwise.

    Attributes:
        status: of the response.
        problem: members of the problem (RFC 9457).
        ticket: number of the request on a stream; None for other calls.
    """

    def __init__(self, status: int, problem: dict[str, Any], ticket: int | None = None) -> None:
        self.status = status
        self.problem = problem
        self.ticket = ticket
        super().__init__(_describe(status, problem))

    @property
    def slug(self) -> str:
        """The kind of problem, such as "untrained"; empty if the response names none."""
        return str(self.problem.get("type", "")).rpartition(":")[2]

    @property
    def outcome(self) -> str:
        """What happened to samples that were sent to be learned.

        "not-learned"; "durable" if they are on disk, and will be learned after a restart of the
        server at the latest; "unknown" if they may have been learned.
        """
        return str(self.problem.get("outcome", "not-learned"))

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server asks for a retry; None if it does not."""
        seconds = self.problem.get("retry_after_seconds")
        if not isinstance(seconds, int | float):
            return None
        return max(_SHORTEST_PAUSE, float(seconds))


def _describe(status: int, problem: dict[str, Any]) -> str:
    text = f"{status} {problem.get('title', 'refused')}"
    if problem.get("detail"):
        text += f": {problem['detail']}"
    errors = problem.get("errors")
    if not isinstance(errors, list):  # the problem of a proxy, which has a form of its own
        errors = []
    first = [
        f"{e.get('pointer', '')} {e.get('detail', '')}".strip() if isinstance(e, dict) else str(e)
        for e in errors[:3]
    ]
    if first:
        text += f" ({'; '.join(first)}{'; ...' if len(errors) > 3 else ''})"
    return " ".join(text.split())


class Unsuitable(Unreachable):
    """The server's certificate is not trusted, or it does not speak the protocol."""


class TooLargeMessage(AnswerLost):
    """The server closed a stream because a message was too large."""


def may_pass(error: ClientError) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, Refused):
        return error.status in _TEMPORARY
    is_final = isinstance(error, Unsuitable | TooLargeMessage)
    return isinstance(error, Unreachable | AnswerLost) and not is_final


def unreachable(url: str, error: Exception) -> Unreachable:
    """Return the client's error for a connection that could not be made."""
    text = f"cannot reach {url}: {error_text(error)}"
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, ssl.SSLCertVerificationError):
            return Unsuitable(f"{text}; `verify` names the certificates to trust")
        link = link.__cause__ or link.__context__
    return Unreachable(f"{text}; is the server running (`wolfstream serve`)?")


def error_text(error: Exception) -> str:
    """Return the text of an error, or its type if it has none."""
    return str(error) or type(error).__name__
