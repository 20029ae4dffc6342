"""Requests whose content is wrong: a spec, a parameter, a sample or a model file."""

from collections.abc import Iterable
from itertools import islice
from typing import NoReturn

from wolfstream.service.errors.refusal import Refusal, SampleError

MOST_ERRORS = 20


class Invalid(Refusal):
    """A field, parameter or spec is wrong."""

    slug, title = "invalid", "The request is not valid"


class InvalidSamples(Invalid):
    """Some samples are wrong; `errors` says which."""

    slug, title = "invalid-samples", "The samples are not valid"


class UnusableState(Invalid):
    """A model file is damaged, of another version, or not one that a server wrote."""

    slug, title = "unusable-state", "The state cannot be used"


def refuse(pointer: str, detail: str) -> NoReturn:
    """Raise InvalidSamples for one place."""
    raise InvalidSamples(f"{pointer} {detail}", [{"pointer": pointer, "detail": detail}])


def refuse_all(detail: str, wrong: Iterable[SampleError]) -> None:
    """Raise with the first errors, if there are any, without looking for more than it names."""
    errors = list(islice(wrong, MOST_ERRORS))
    if errors:
        raise InvalidSamples(detail, errors)
