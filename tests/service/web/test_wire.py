"""Formats: what bytes mean, which format is spoken, and what a problem looks like."""

import contextlib
import json
import math
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from wolfstream.service.errors import (
    Invalid,
    InvalidSamples,
    ModelBroken,
    QueueFull,
    Refusal,
    UnknownModel,
    Unreadable,
    UnsupportedFormat,
)
from wolfstream.service.web.formats.wire import (
    JSON,
    MEDIA_TYPES,
    MSGPACK,
    PROBLEM_MEDIA_TYPE,
    Format,
    format_of_body,
    format_of_response,
    problem,
)

both = pytest.mark.parametrize("spoken", [JSON, MSGPACK], ids=["json", "msgpack"])
TEXT = st.text(max_size=8)
PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


def typed(data: Any) -> Any:
    """Plain data with its types, because True == 1 == 1.0."""
    if isinstance(data, list):
        return [typed(item) for item in data]
    if isinstance(data, dict):
        return {key: typed(value) for key, value in data.items()}
    return type(data), repr(data)


def unreadable(spoken: Format, body: bytes) -> str:
    with pytest.raises(Unreadable) as caught:
        spoken.decode(body, BOUNDS)
    return caught.value.detail


def decodes_or_refuses(spoken: Format, body: bytes) -> None:
    try:
        spoken.decode(body, BOUNDS)
    except Unreadable as error:
        detail = error.detail
    else:
        return
    assert detail.startswith("the body is not ")
    assert len(detail) < 1000


class TestRoundTrip:
    @both
    @given(data=PLAIN)
    def test_plain_data_comes_back_with_its_types(self, spoken: Format, data: Any):
        assert typed(spoken.decode(spoken.encode(data), BOUNDS)) == typed(data)

    @given(PLAIN)
    def test_json_is_what_others_call_json(self, data: Any):
        assert typed(json.loads(JSON.encode(data))) == typed(data)
        assert typed(JSON.decode(json.dumps(data).encode(), BOUNDS)) == typed(data)

    @given(PLAIN)
    def test_messagepack_is_what_others_call_messagepack(self, data: Any):
        assert typed(msgpack.unpackb(MSGPACK.encode(data))) == typed(data)
        assert typed(MSGPACK.decode(msgpack.packb(data), BOUNDS)) == typed(data)

    @given(st.binary(max_size=50))
    def test_messagepack_carries_bytes(self, data: bytes):
        assert MSGPACK.decode(MSGPACK.encode({"data": data}), BOUNDS) == {"data": data}


class TestJson:
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b" ",
            b"{",
            b"[1,]",
            b'{"a": 1,}',
            b"{} {}",
            b"{'a': 1}",
            b"{a: 1}",
            b"{1: 2}",
            b"01",
            b"+1",
            b".5",
            b"0x10",
            b"nul",
            b'"open',
            b'"\xff"',
            rb'"\ud800"',
            rb'"\x41"',
            b"\x00",
            b"\xef\xbb\xbf{}",
            "{}".encode("utf-16"),
            msgpack.packb({"x": [1], "y": 1}),
        ],
    )
    def test_what_is_not_json_is_unreadable(self, body: bytes):
        assert unreadable(JSON, body).startswith("the body is not JSON: ")

    @pytest.mark.parametrize("opening", [b"[", b'{"a":'])
    def test_deep_nesting_is_unreadable(self, opening: bytes):
        unreadable(JSON, opening * 100_000)

    def test_an_endless_number_is_unreadable(self):
        unreadable(JSON, b"1" * 100_000)

    def test_numbers_out_of_range_are_for_the_reader_to_refuse(self):
        assert JSON.decode(b"[1e400, -1e400]", BOUNDS) == [math.inf, -math.inf]
        assert JSON.decode(b"[Infinity, -Infinity]", BOUNDS) == [math.inf, -math.inf]
        assert math.isnan(JSON.decode(b"NaN", BOUNDS))

    def test_integers_have_no_bound(self):
        assert JSON.decode(str(10**400).encode(), BOUNDS) == 10**400

    @given(st.binary(max_size=40))
    def test_any_bytes(self, body: bytes):
        decodes_or_refuses(JSON, body)

    @given(st.text('[]{},:"\\/ue0123456789-+.NaInftyrlse \n', max_size=40))
    def test_any_text_of_its_characters(self, text: str):
        decodes_or_refuses(JSON, text.encode())


class TestMessagePack:
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"\xc1",
            b"\x01\x01",
            b"\x92\x01",
            b"\x81\xa1a",
            b"\xa2a",
            b"\xa1\xff",
            b"\xa3\xed\xa0\x80",
            b"\xcb\x00",
            b"\xd4\xff\x00",
            b"\xd7\xff" + b"\xff" * 8,
            b"\xc7\x0c\xff" + b"\xff" * 12,
        ],
        ids=bytes.hex,
    )
    def test_what_is_not_messagepack_is_unreadable(self, body: bytes):
        assert unreadable(MSGPACK, body).startswith("the body is not MessagePack: ")

    @pytest.mark.parametrize(
        "kind", [0xC6, 0xC9, 0xDB, 0xDD, 0xDF], ids=["bin", "ext", "str", "array", "map"]
    )
    @pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\x03"])
    def test_a_declared_length_that_is_not_there_is_unreadable(self, kind: int, length: bytes):
        unreadable(MSGPACK, bytes([kind]) + length + b"\x01")

    @pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a", b"\xdc\x00\x01"])
    def test_deep_nesting_is_unreadable(self, opening: bytes):
        unreadable(MSGPACK, opening * 100_000 + b"\xc0")

    @pytest.mark.parametrize("key", [b"\x01", b"\xc0", b"\xc3", b"\xca\0\0\0\0", b"\x90", b"\x80"])
    def test_a_map_has_no_keys_but_text(self, key: bytes):
        unreadable(MSGPACK, b"\x81" + key + b"\x01")

    def test_numbers_out_of_range_are_for_the_reader_to_refuse(self):
        assert MSGPACK.decode(msgpack.packb([math.inf, 2**64 - 1]), BOUNDS) == [math.inf, 2**64 - 1]

    @given(st.binary(max_size=60))
    def test_any_bytes(self, body: bytes):
        decodes_or_refuses(MSGPACK, body)

    @given(st.data())
    def test_any_damage_to_a_body(self, data: st.DataObject):
        body = {"x": {"dtype": "<f4", "shape": [1, 2], "data": bytes(8)}, "y": [True, -5, "é"]}
        packed = bytearray(msgpack.packb(body))
        for _ in range(data.draw(st.integers(1, 3))):
            packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
        decodes_or_refuses(MSGPACK, bytes(packed[: data.draw(st.integers(0, len(packed)))]))


class TestContentType:
    @pytest.mark.parametrize(
        ("content_type", "spoken"),
        [
            (None, JSON),
            ("", JSON),
            (" ", JSON),
            ("; charset=utf-8", JSON),
            ("application/json", JSON),
            ("application/json; charset=utf-8", JSON),
            (" Application/JSON ;charset=utf-8", JSON),
            ("application/x-www-form-urlencoded", JSON),
            ("application/vnd.msgpack", MSGPACK),
            ("application/x-msgpack", MSGPACK),
            ("APPLICATION/X-MSGPACK; v=1", MSGPACK),
        ],
    )
    def test_spoken(self, content_type: str | None, spoken: Format):
        assert format_of_body(content_type) is spoken

    @pytest.mark.parametrize(
        "content_type",
        [
            "text/plain",
            "text/json",
            "application/msgpack",
            "application/xml",
            "multipart/form-data; boundary=x",
            "json",
            "*/*",
            "application/json, application/x-msgpack",
            "é",
        ],
    )
    def test_not_spoken(self, content_type: str):
        with pytest.raises(UnsupportedFormat) as caught:
            format_of_body(content_type)
        assert all(media_type in caught.value.detail for media_type in MEDIA_TYPES)

    @given(st.text(max_size=30))
    def test_anything(self, content_type: str):
        with contextlib.suppress(UnsupportedFormat):
            assert format_of_body(content_type) in (JSON, MSGPACK)


class TestAccept:
    @both
    @pytest.mark.parametrize(
        "accept",
        [None, "", "*/*", "application/*", "text/html", "text/html, */*;q=0.8", ",;,", "*/*;q=0"],
    )
    def test_who_does_not_choose_gets_what_they_sent(self, accept: str | None, spoken: Format):
        assert format_of_response(accept, spoken) is spoken

    @both
    @pytest.mark.parametrize(
        ("accept", "chosen"),
        [
            ("application/json", JSON),
            ("application/vnd.msgpack", MSGPACK),
            ("application/x-msgpack", MSGPACK),
            ("APPLICATION/VND.MSGPACK; q=0.5", MSGPACK),
            ("text/html, application/vnd.msgpack, */*", MSGPACK),
            ("*/*,application/json", JSON),
            ("application/json, application/vnd.msgpack", JSON),
            ("application/vnd.msgpack, application/json;q=0.5", MSGPACK),
            ("application/vnd.msgpack;q=0.1, application/json;q=0.9", JSON),
            ("application/json; q=0.001, application/vnd.msgpack;Q=1.000", MSGPACK),
            ("application/json;q=0, application/vnd.msgpack", MSGPACK),
            ("application/json;q=0", MSGPACK),
            ("application/vnd.msgpack;q=0.000, */*", JSON),
            ("application/x-msgpack;q=0", JSON),
            ("*/*;q=0, application/vnd.msgpack", MSGPACK),
            ("application/json;q=0.2, application/json;q=nan, */*;q=1e9", JSON),
        ],
    )
    def test_the_format_of_most_weight_is_spoken(self, accept: str, chosen: Format, spoken: Format):
        assert format_of_response(accept, spoken) is chosen

    @given(st.text(max_size=30), st.sampled_from([JSON, MSGPACK]))
    def test_anything(self, accept: str, spoken: Format):
        assert format_of_response(accept, spoken) in (JSON, MSGPACK)


class TestMediaTypes:
    @both
    def test_what_is_answered_can_be_sent_back(self, spoken: Format):
        assert format_of_body(spoken.media_type) is spoken
        assert format_of_response(spoken.media_type, JSON) is spoken

    def test_a_problem_says_that_it_is_one(self):
        assert PROBLEM_MEDIA_TYPE == "application/problem+json"

    @pytest.mark.parametrize("media_type", MEDIA_TYPES)
    def test_all_are_spoken(self, media_type: str):
        assert format_of_body(media_type) in (JSON, MSGPACK)


class TestProblem:
    def test_the_members_of_rfc_9457(self):
        assert problem(UnknownModel("there is no model 'a'"), 404) == {
            "type": "urn:wolfstream:unknown-model",
            "title": "There is no such model",
            "status": 404,
            "detail": "there is no model 'a'",
        }

    def test_errors_say_where(self):
        errors: Any = [{"row": 3, "pointer": "/x/3/7", "detail": "is NaN"}]
        body = problem(InvalidSamples("some numbers are wrong", errors), 422)
        assert body["type"] == "urn:wolfstream:invalid-samples"
        assert body["errors"] == errors

    @pytest.mark.parametrize(("kind", "seconds"), [(QueueFull, 1), (ModelBroken, 60)])
    def test_when_to_try_again(self, kind: Callable[[str], Refusal], seconds: int):
        assert problem(kind("later"), 503)["retry_after_seconds"] == seconds

    @both
    @pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x1b[2J"])
    def test_text_that_is_none_is_shown(self, spoken: Format, text: str):
        """No encoder takes half a surrogate pair; a client may have sent it."""
        error = Invalid(f"{text} is wrong", [{"pointer": "/x", "detail": f"not {text}"}])
        body = problem(error, 422)
        assert spoken.decode(spoken.encode(body), BOUNDS) == body
        shown = ascii(text)[1:-1]
        assert (body["detail"], body["errors"]) == (
            f"{shown} is wrong",
            [{"pointer": "/x", "detail": f"not {shown}"}],
        )

    @both
    @given(
        detail=st.text(max_size=20),
        errors=st.lists(
            st.fixed_dictionaries(
                {"pointer": TEXT, "detail": TEXT}, optional={"row": st.integers(0, 2**31)}
            ),
            max_size=3,
        ),
    )
    def test_can_be_sent(self, spoken: Format, detail: str, errors: Any):
        body = problem(InvalidSamples(detail, errors), 422)
        assert spoken.decode(spoken.encode(body), BOUNDS) == body
        assert ("errors" in body) == bool(errors)
