"""What the body that makes a model says of another one that it follows, besides its spec."""

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from wolfstream.service.errors import Invalid, SampleError, pointer_to

# empty: it has learned nothing. state: it is what the champion is. samples: it learns what the
# champion's log still holds.
Start: TypeAlias = Literal["empty", "state", "samples"]
_STARTS: tuple[Start, ...] = get_args(Start)


class Follows(NamedTuple):
    """The name of the champion, and what the challenger starts from."""

    champion: str
    start: Start


def read_follows(body: Any) -> tuple[Follows | None, Any]:
    """Return the model that a new one follows, if any, and the rest of the body. Raises Invalid."""
    if not isinstance(body, dict):
        return None, body
    if not {"follows", "start"} & body.keys():
        _check_spelling(body)
        return None, body
    spec = {name: value for name, value in body.items() if name not in ("follows", "start")}
    champion, start = body.get("follows"), body.get("start", "empty")
    wrong: list[SampleError] = []
    if not isinstance(champion, str):
        detail = "must name the model to follow" if "follows" in body else _NOBODY
        wrong.append({"pointer": "/follows", "detail": detail})
    if start not in _STARTS:
        detail = f"must be {', '.join(_STARTS[:-1])} or {_STARTS[-1]}"
        wrong.append({"pointer": "/start", "detail": detail})
    if wrong:
        raise Invalid('a challenger says "follows": NAME, and may say "start"', wrong)
    assert isinstance(champion, str)
    return Follows(champion, start), spec


def _check_spelling(body: dict[Any, Any]) -> None:
    """Raise Invalid for a field that is nearly `follows`, which no list of a spec's fields has."""
    for name in body:
        if isinstance(name, str) and name.lower() in _NEARLY_FOLLOWS:
            detail = f'unknown field "{name}"; did you mean "follows"?'
            wrong: SampleError = {"pointer": pointer_to(name), "detail": detail}
            raise Invalid("the spec is not valid", [wrong])


_NEARLY_FOLLOWS = {"follow", "follows", "following", "champion"}
_NOBODY = 'is missing: "start" belongs to a model that follows another one'
