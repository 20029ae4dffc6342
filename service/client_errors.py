"""What can go wrong between a client and a server, in one line each.

ClientError
├── Unreachable              no connection: nothing was sent
│   └── Unsuitable           what is there is not trusted, or not wolfstream
├── Refused                  the server answered with a problem: nothing of it was applied
├── AnswerLost               a request was sent, its answer did not come: it may be applied
│   └── TooLargeMessage      the server closed a stream over a message
└── NotDone                  a job had not ended when the wait for it did

They are raised once trying again has not helped, or cannot help: `may_pass` says which can.
"""

import ssl
from typing import Any

# Too slow, over the quota, and what servers and the proxies before them say of a moment.
_OF_A_MOMENT = {408, 429, 502, 503, 504}
# A server that asks for no pause at all still gets one.
_SHORTEST_PAUSE = 0.05


class ClientError(Exception):
    """What went wrong.

    acknowledged: how many samples of the call, or of the stream so far, the server had
        acknowledged; None where nothing was to be learned.
    idempotency_key: what the call learned under. The same call with this key goes on where it
        stopped: what was learned already is answered again, not learned again.
    """

    acknowledged: int | None = None
    idempotency_key: str | None = None

    def __str__(self) -> str:
        text = super().__str__()
        if self.acknowledged is None:
            return text
        return f"{text}; {self.acknowledged:,} samples were acknowledged"


class Unreachable(ClientError):
    """There is no connection; nothing was sent."""


class AnswerLost(ClientError):
    """A request was sent and no answer came: whether it was applied is not known."""


class NotDone(ClientError):
    """A job goes on beyond the time for which it was waited for; `job` is its description."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        super().__init__(f"job {job.get('job')} is still {job.get('status')}")


class Refused(ClientError):
    """The server refused a request; nothing of it was applied.

    status, problem: the answer's status and its members (RFC 9457).
    ticket: the number of the request on a stream.
    """

    def __init__(self, status: int, problem: dict[str, Any], ticket: int | None = None) -> None:
        self.status = status
        self.problem = problem
        self.ticket = ticket
        super().__init__(_describe(status, problem))

    @property
    def slug(self) -> str:
        """The kind of problem, such as "untrained"; empty where the answer names none."""
        return str(self.problem.get("type", "")).rpartition(":")[2]

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server wants to be asked again, if it does."""
        seconds = self.problem.get("retry_after_seconds")
        if not isinstance(seconds, int | float):
            return None
        return max(_SHORTEST_PAUSE, float(seconds))


def _describe(status: int, problem: dict[str, Any]) -> str:
    text = f"{status} {problem.get('title', 'refused')}"
    if problem.get("detail"):
        text += f": {problem['detail']}"
    wrong = problem.get("errors") or []
    places = [f"{e.get('pointer', '')} {e.get('detail', '')}".strip() for e in wrong[:3]]
    if places:
        text += f" ({'; '.join(places)}{'; ...' if len(wrong) > 3 else ''})"
    return " ".join(text.split())


class Unsuitable(Unreachable):
    """What is there has a certificate that is not trusted, or does not speak the protocol."""


class TooLargeMessage(AnswerLost):
    """The server closed a stream over a message that was too big."""


def may_pass(error: ClientError) -> bool:
    """Whether the same request may succeed in a while."""
    if isinstance(error, Refused):
        return error.status in _OF_A_MOMENT
    lasting = isinstance(error, Unsuitable | TooLargeMessage)
    return isinstance(error, Unreachable | AnswerLost) and not lasting


def unreachable(url: str, error: Exception) -> Unreachable:
    """The error for a connection that could not be made."""
    text = f"cannot reach {url}: {reason_of(error)}"
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, ssl.SSLCertVerificationError):
            return Unsuitable(f"{text}; `verify` names the certificates to trust")
        link = link.__cause__ or link.__context__
    return Unreachable(f"{text}; is the server running (`wolfstream serve`)?")


def reason_of(error: Exception) -> str:
    """What an error says, or at least its name."""
    return str(error) or type(error).__name__
