"""The fields `follows` and `start` of a body that creates a challenger, besides its spec."""

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from wolfstream.service.errors import Invalid, SampleError, pointer_to

# empty: nothing learned. state: the champion's state. samples: before the first sample that the
# champion's log still has.
Start: TypeAlias = Literal["empty", "state", "samples"]
_STARTS: tuple[Start, ...] = get_args(Start)
# Misspelt names of the field.
_NEARLY_FOLLOWS = {"follow", "follows", "following", "champion"}
_FOLLOWS_NOBODY = 'is missing: "start" belongs to a model that follows another one'


class FollowFields(NamedTuple):
    """The name of the champion, and what the challenger starts from."""

    champion: str
    start: Start


def read_follows(body: Any) -> tuple[FollowFields | None, Any]:
    """Return a challenger's fields and the rest of a body, which is the spec.

    The fields are None if the body has neither, and so describes a model that follows no other.

    Raises Invalid.
    """
    if not isinstance(body, dict):
        return None, body
    if not {"follows", "start"} & body.keys():
        _check_spelling(body)
        return None, body
    spec = {name: value for name, value in body.items() if name not in ("follows", "start")}
    champion, start = body.get("follows"), body.get("start", "empty")
    wrong: list[SampleError] = []
    if not isinstance(champion, str):
        detail = "must name the model to follow" if "follows" in body else _FOLLOWS_NOBODY
        wrong.append({"pointer": "/follows", "detail": detail})
    if start not in _STARTS:
        detail = f"must be {', '.join(_STARTS[:-1])} or {_STARTS[-1]}"
        wrong.append({"pointer": "/start", "detail": detail})
    if wrong:
        raise Invalid('a challenger says "follows": NAME, and may say "start"', wrong)
    assert isinstance(champion, str)
    return FollowFields(champion, start), spec


def _check_spelling(body: dict[Any, Any]) -> None:
    """Raise Invalid for a field that is nearly `follows`: the spec's check cannot suggest it."""
    for name in body:
        if isinstance(name, str) and name.lower() in _NEARLY_FOLLOWS:
            detail = f'unknown field "{name}"; did you mean "follows"?'
            wrong: SampleError = {"pointer": pointer_to(name), "detail": detail}
            raise Invalid("the spec is not valid", [wrong])
