"""The API keys that a running server accepts, what each of them grants, and its quota."""

import hmac
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from wolfstream.service.access.keys import ApiKeys, Key, digest
from wolfstream.service.access.scopes import Scope
from wolfstream.service.errors import Forbidden, QuotaExceeded, Unauthenticated


class Quota:
    """A limit of samples per second on average, with a burst of one second's samples.

    The number of samples is known only after a request has been read. So a request is admitted
    while there is any credit; it may cause a debt, which must be paid off before the next request.
    A batch of any size passes, and the body of a client in debt is not read.

    If several processes admit requests, each has its own bucket, and is told what the others spend.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[int], None] | None = None,
    ) -> None:
        """Begin with full credit.

        Args:
            per_second: the limit.
            clock: returns the time in seconds.
            tell: called with the number of samples of each `spend`, below zero for a `give_back`.
        """
        self._per_second = per_second
        self._max_credit = max(per_second, 1.0)
        self._clock, self._tell = clock, tell
        self._credit = self._max_credit  # negative is debt
        self._refilled = clock()  # when credit was last added

    def check(self) -> None:
        """Raise QuotaExceeded if there is no credit, with the seconds until there will be."""
        now = self._clock()
        earned = (now - self._refilled) * self._per_second
        self._credit = min(self._max_credit, self._credit + earned)
        self._refilled = now
        if self._credit <= 0.0:
            seconds = max(1, math.ceil(-self._credit / self._per_second))
            raise QuotaExceeded(
                f"this key has {self._per_second:g} samples a second; try again in {seconds} s",
                retry_after_seconds=seconds,
            )

    def spend(self, samples: int) -> None:
        """Charge samples that this process has admitted."""
        self._credit -= samples
        if self._tell is not None:
            self._tell(samples)

    def spent_elsewhere(self, samples: int) -> None:
        """Charge samples that another process of the server has admitted."""
        self._credit -= samples


# Responses to learning contain predictions, so the scope learn includes predict.
_IMPLIED: dict[Scope, frozenset[Scope]] = {
    "predict": frozenset({"predict"}),
    "learn": frozenset({"predict", "learn"}),
    "admin": frozenset({"predict", "learn", "admin"}),
}


class Requirement(NamedTuple):
    """What the key of a request must allow."""

    scope: Scope
    model: str | None  # the model that the request is about
    every_model: bool  # whether the key must be for all models
    under_quota: bool  # whether the request has rows, which count towards the quota


class Grant(NamedTuple):
    """What the sender of a request may do: what its key allows, or everything if none is needed."""

    key_id: str  # empty if no key is needed
    client: str  # the key's name, which a key that replaces it also has; empty if none is needed
    scopes: frozenset[Scope]
    prefix: str  # the key is for models whose names begin with it
    quota: Quota | None  # None for any number of samples

    def admit(self, need: Requirement) -> None:
        """Check what a request needs, before its body is read. Raises Forbidden, QuotaExceeded."""
        if need.every_model:
            self.check_all_models()
        elif need.model is not None:
            self.check_model(need.model)
        self.check(need.scope)
        if need.under_quota:
            self.check_quota()

    def check_quota(self) -> None:
        """Raise QuotaExceeded if the key has to wait before it may send more samples."""
        if self.quota is not None:
            self.quota.check()

    def spend(self, samples: int) -> None:
        """Charge samples to the quota before they are used. Raises QuotaExceeded."""
        if self.quota is not None:
            self.quota.check()
            self.quota.spend(samples)

    def give_back(self, samples: int) -> None:
        """Credit samples that were refused for another reason after `spend`."""
        if self.quota is not None:
            self.quota.spend(-samples)

    def check(self, scope: Scope) -> None:
        """Raise Forbidden if the key does not have this scope."""
        if scope not in self.scopes:
            raise Forbidden(f"this key does not have the scope {scope!r}; use one that has")

    def check_model(self, name: str) -> None:
        """Raise Forbidden if the key is not for this model, whether or not it exists."""
        if not name.startswith(self.prefix):
            raise Forbidden(f"this key is for models whose names begin with {self.prefix!r}")

    def check_all_models(self) -> None:
        """Raise Forbidden if the key is for some models only."""
        if self.prefix:
            raise Forbidden(f"this key is only for models whose names begin with {self.prefix!r}")


class KeyRing:
    """The keys of a running server, as it last read them.

    Attributes:
        required: whether requests need a key.
        spent: called with the id of a key and the number of samples that this process has admitted
            under its quota.
        changed: called after changed keys have taken effect.
    """

    def __init__(self, keys: ApiKeys) -> None:
        """Read the keys. Raises KeysError."""
        self._source = keys
        self.spent: Callable[[str, int], None] = _ignore_spent
        self.changed: Callable[[], None] = _ignore_change
        self._version = keys.version()  # of the keys that were last read
        self.required = False
        self._keys: dict[str, Key] = {}  # by id
        self._grants: dict[str, Grant] = {}  # by id of the key
        self._open_grant = Grant("", "", _IMPLIED["admin"], "", None)  # if no key is required
        self._replace(keys.read())

    @property
    def name(self) -> str:
        """Where the keys are stored, for messages."""
        return self._source.name

    @property
    def keys(self) -> list[Key] | None:
        """The keys in force; None if requests need none."""
        return list(self._keys.values()) if self.required else None

    def refresh(self) -> bool:
        """Read the keys if they have changed, and apply them; return whether that happened.

        If all keys are gone, the previous ones stay valid, so that nobody is admitted or locked out
        by accident. Raises KeysError if they cannot be read; the previous ones stay valid then,
        too.
        """
        version = self._source.version()
        if version == self._version:
            return False
        keys = self._source.read()
        self._version = version
        if keys is None:
            return False
        self._replace(keys)
        self.changed()
        return True

    def admit(self, authorization: bytes | None, need: Requirement) -> Grant:
        """Return the grant of a request, before its body is read.

        Args:
            authorization: the request's `Authorization` header; None without it.
            need: what its key must allow.

        Raises Unauthenticated, Forbidden, QuotaExceeded.
        """
        grant = self.grant(authorization)
        grant.admit(need)
        return grant

    def grant(self, authorization: bytes | None) -> Grant:
        """Return what the bearer of an `Authorization` header may do. Raises Unauthenticated."""
        if not self.required:
            return self._open_grant
        scheme, _, key = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer":
            raise Unauthenticated("this server needs a key; send Authorization: Bearer KEY")
        key = key.strip()
        key_id = key.rpartition(b"_")[0].decode("latin-1")
        stored = self._keys.get(key_id)
        if stored is None or not hmac.compare_digest(stored.digest, digest(key)):
            raise Unauthenticated("the key is not known here; it may have been revoked")
        return self._grants[stored.id]

    def spent_elsewhere(self, key_id: str, samples: int) -> None:
        """Charge samples that another process of the server has admitted to a key's quota."""
        grant = self._grants.get(key_id)
        if grant is not None and grant.quota is not None:
            grant.quota.spent_elsewhere(samples)

    def holds(self, grant: Grant) -> bool:
        """Return whether a grant is still valid."""
        if not self.required:
            return True
        return self._grants.get(grant.key_id) is grant

    def _replace(self, keys: list[Key] | None) -> None:
        """Apply keys; the grants of unchanged keys stay the same objects."""
        self.required = keys is not None
        old_keys, old_grants = self._keys, self._grants
        self._keys = {key.id: key for key in keys or []}
        self._grants = {
            key.id: old_grants[key.id] if old_keys.get(key.id) == key else self._make_grant(key)
            for key in self._keys.values()
        }

    def _make_grant(self, key: Key) -> Grant:
        scopes = frozenset[Scope]().union(*(_IMPLIED[scope] for scope in key.scopes))
        quota = None
        if key.samples_per_second is not None:
            quota = Quota(key.samples_per_second, tell=lambda n: self.spent(key.id, n))
        return Grant(key.id, key.name, scopes, key.prefix, quota)


def _ignore_spent(key_id: str, samples: int) -> None:
    """Do nothing: no other process shares the quotas."""


def _ignore_change() -> None:
    """Do nothing: no other process uses the keys."""
