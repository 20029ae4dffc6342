"""Problems of a spec: pydantic's errors as pointers and advice, in terms of the spec."""

import json
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import groupby, islice
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from wolfstream.service.errors import MOST_ERRORS, SampleError, pointer_to
from wolfstream.service.spec.kernel import SpecPart

Path = tuple[str, ...]

# The most characters of a value in a body that a message repeats.
_LONGEST_ECHO = 40
_EXAMPLES: dict[str, Any] = {
    "kernel": {"type": "rbf"},
    "working_set": {"C": 1.0},
    "asset": {"dimension": 512},
    "semiparametric": {"window": 2000},
    "basis": [{"type": "constant"}],
    "class_weight": [{"label": "spam", "weight": 2.0}],
}
_KINDS = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_OBJECTS = {"model_type", "model_attributes_type", "dict_type"}


class PartFields(NamedTuple):
    """A part of the spec.

    Attributes:
        path: the names of the fields that lead to it.
        types: the possible values of its field `type`, if it has one.
        fields: the names of its fields.
        nullable: the names of those that may be null.
    """

    path: Path
    types: tuple[str, ...]
    fields: tuple[str, ...]
    nullable: frozenset[str]


def parts_of(model: type[SpecPart], path: Path = ()) -> Iterator[PartFields]:
    """Yield a part of a spec and the parts within it. Paths do not include array indices."""
    names = {field.alias or name: field for name, field in model.model_fields.items()}
    tag = model.model_fields.get("type")
    types = get_args(tag.annotation) if tag else ()
    nullable = frozenset(
        n for n, field in names.items() if type(None) in get_args(field.annotation)
    )
    yield PartFields(path, types, tuple(names), nullable)
    for name, field in names.items():
        for part in _parts_in(field.annotation):
            yield from parts_of(part, (*path, name))


def _parts_in(annotation: Any) -> Iterator[type[SpecPart]]:
    if isinstance(annotation, type) and issubclass(annotation, SpecPart):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts_in(argument)


class Refusals:
    """Describes problems in terms of a spec with these parts."""

    def __init__(self, parts: Iterable[PartFields]) -> None:
        self._parts = list(parts)
        self._names = {name for part in self._parts for name in part.fields}

    def problems(self, error: ValidationError) -> list[SampleError]:
        """Return one problem for each wrong place in the body, up to a bound."""
        errors = error.errors(include_url=False)
        problems: list[SampleError] = []
        for place, group in islice(groupby(errors, self._place), MOST_ERRORS):
            items = list(group)
            if items[0]["type"] == "contradiction":
                pointer, detail = items[0]["ctx"]["pointer"], items[0]["msg"]
            else:
                pointer, detail = pointer_to(*place), self._detail(place, items)
            problems.append({"pointer": pointer, "detail": detail})
        return problems

    def _place(self, item: ErrorDetails) -> tuple[int | str, ...]:
        """Return an error's place in the body, without pydantic's names for members of unions."""
        *path, last = item["loc"] or ("",)
        place = [part for part in path if part in self._names or isinstance(part, int)]
        if last in self._names or isinstance(last, int) or item["type"] in _BY_NAME:
            place.append(last)
        return tuple(place)

    def _detail(self, place: tuple[int | str, ...], items: list[ErrorDetails]) -> str:
        first, last = items[0], place[-1] if place else ""
        context = first.get("ctx", {})
        match first["type"]:
            case "extra_forbidden":
                return self._unknown_field(place, first["loc"])
            case "missing":
                return f"the field {_quoted(last)} is missing"
            case "union_tag_invalid":
                tags = listed(_tags(context["expected_tags"]))
                return f'"type" must be {tags}, not {_echo(context["tag"])}'
            case "union_tag_not_found":
                # pydantic does not list the tags here, but the part at this place does.
                path = tuple(name for name in place if isinstance(name, str))
                types = [t for part in self._parts if part.path == path for t in part.types]
                return f'"type" is missing; it must be {listed(map(_quoted, types))}'
            case "too_long":
                return f"{_quoted(last)} must have at most {context['max_length']} entries"
            case "invalid_key":
                return "names of fields must be strings"
        return self._wrong_value(place, items)

    def _wrong_value(self, place: tuple[int | str, ...], items: list[ErrorDetails]) -> str:
        value = items[0]["input"]
        wanted = listed(dict.fromkeys(_wanted(item, place) for item in items))
        subject = " ".join(_quoted(p) if isinstance(p, str) else str(p) for p in _subject(place))
        if self._is_nullable(place):
            wanted += ", or null"
        plain = value is None or isinstance(value, str | int | float)
        echo = f", not {_echo(value)}" if plain and place else ""
        return f"{subject or 'the spec'} must be {wanted}{echo}"

    def _is_nullable(self, place: tuple[int | str, ...]) -> bool:
        *path, last = place or ("",)
        names = tuple(name for name in path if isinstance(name, str))
        return any(part.path == names and last in part.nullable for part in self._parts)

    def _unknown_field(self, place: tuple[int | str, ...], loc: tuple[int | str, ...]) -> str:
        *path, last = place
        name, parents = str(last), tuple(part for part in path if isinstance(part, str))
        unknown = f"unknown field {_quoted(name)}"
        siblings = [part for part in self._parts if part.path == parents]
        chosen = [part for part in siblings if set(part.types) & set(loc)] or siblings
        types = [t for part in siblings if name in part.fields for t in part.types]
        if types:
            present = next(_quoted(t) for part in chosen for t in part.types if t in loc)
            owning = listed(map(_quoted, types))
            return f"{unknown} of the type {present}; it belongs to the type {owning}"
        fields = list(dict.fromkeys(field for part in chosen for field in part.fields))
        by_case = {field.lower(): field for field in fields}
        similar = get_close_matches(name[:_LONGEST_ECHO].lower(), by_case, 1)
        if similar:
            return f"{unknown}; did you mean {_quoted(by_case[similar[0]])}?"
        owners: dict[Path, Path] = {}  # last name of a path -> the outermost path that has it
        for part in self._parts:
            if name in part.fields:
                owners.setdefault(part.path[-1:], part.path)
        if owners:
            return f"{unknown}; it belongs to {listed(map(_owner, owners.values()))}"
        whose = _quoted(parents[-1]) if parents else "the spec"
        return f"{unknown}; the fields of {whose} are {listed(map(_quoted, fields), 'and')}"


# Errors whose last location is a field of the body, known or not.
_BY_NAME = {"extra_forbidden", "missing", "invalid_key"}


def _owner(path: Path) -> str:
    return " of ".join(map(_quoted, reversed(path))) or "the spec itself"


def _subject(place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return the name of a field, followed by the index if the place is in an array."""
    return place[-2:] if place and isinstance(place[-1], int) else place[-1:]


def _wanted(item: ErrorDetails, place: tuple[int | str, ...]) -> str:
    """Return what a value must be, as part of a sentence."""
    kind, context = item["type"], item.get("ctx", {})
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = context[name]
        return f"{words} {bound:g}" if isinstance(bound, float) else f"{words} {bound}"
    if kind == "literal_error":
        return listed(_tags(context["expected"].replace(" or ", ", ")))
    if kind in _OBJECTS:
        return f"an object such as {_example(place, item['input'])}"
    if kind == "list_type":
        return f"an array such as {json.dumps(_EXAMPLES.get(str(place[-1]), []))}"
    return item["msg"]


def _example(place: tuple[int | str, ...], value: Any) -> str:
    """Return an example of a valid object; if `value` is the bare name of a type, of that type."""
    name = next((part for part in reversed(place) if isinstance(part, str)), None)
    if name is None:
        return '{} or {"task": "regression"}'
    example = _EXAMPLES.get(name, {})
    if isinstance(example, list):
        example = example[0]
    if "type" in example and isinstance(value, str) and value in _BARE_TYPES:
        example = {"type": value}
    return json.dumps(example)


_BARE_TYPES = {"rbf", "polynomial", "linear", "constant", "trend", "sinc"}


def _tags(expected: str) -> list[str]:
    """Return pydantic's list 'a', 'b' as names in double quotes."""
    return [_quoted(tag.strip(" '")) for tag in expected.split(",")]


def listed(words: Iterable[str], last: str = "or") -> str:
    """Return words as a list within a sentence: a, b or c."""
    *others, final = words
    return f"{', '.join(others)} {last} {final}" if others else final


def _quoted(name: Any) -> str:
    text = str(name)
    return json.dumps(text if len(text) <= _LONGEST_ECHO else text[:_LONGEST_ECHO] + "...")


def _echo(value: Any) -> str:
    """Return a value of the body as JSON, shortened."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_ECHO:
        return "such a large number"
    return json.dumps(value)
