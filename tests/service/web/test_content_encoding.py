"""zstd: within the cap in content and in memory, whole frames only."""

import json
import tracemalloc
from typing import Any

import httpx
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.service.access.test_keys import problem
from wolfstream.service.errors import TooLarge, Unreadable
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.content_encoding import decompress_zstd

ZSTD = {"Content-Encoding": "zstd"}
# A frame of 4 bytes that readers pass over (RFC 8878, 3.1.2).
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"


def streamed(*parts: bytes, **parameters: Any) -> bytes:
    """One frame that does not say how long its content is."""
    of_frame = zstandard.ZstdCompressionParameters(**parameters)
    compressor = zstandard.ZstdCompressor(compression_params=of_frame).compressobj()
    return b"".join([compressor.compress(part) for part in parts]) + compressor.flush()


@given(st.binary(max_size=300), st.integers(1, 19), st.booleans(), st.booleans())
def test_what_was_packed_comes_out(content: bytes, level: int, checksum: bool, size: bool) -> None:
    compressor = zstandard.ZstdCompressor(
        level=level, write_checksum=checksum, write_content_size=size
    )
    assert decompress_zstd(compressor.compress(content), 300) == content


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=10))
def test_frames_follow_one_another(contents: list[bytes]) -> None:
    packed = b"".join(zstandard.compress(content) for content in contents)
    assert decompress_zstd(packed, 500) == b"".join(contents)
    assert decompress_zstd(SKIPPABLE + packed + SKIPPABLE, 500) == b"".join(contents)


@given(st.binary(min_size=1, max_size=200), st.integers(1, 3), st.data())
def test_a_body_that_ends_too_early_is_unreadable(
    content: bytes, frames: int, data: st.DataObject
) -> None:
    """Except between two frames, where nobody could tell."""
    frame = zstandard.compress(content)
    cut = data.draw(
        st.integers(0, len(frame) * frames - 1).filter(lambda n: n % len(frame) or not n)
    )
    with pytest.raises(Unreadable):
        decompress_zstd((frame * frames)[:cut], 1000)


@given(st.binary(max_size=300))
def test_what_is_no_zstd_is_unreadable(garbage: bytes) -> None:
    packed = zstandard.compress(b"content")
    for body in (garbage, packed + b"\x00" + garbage):
        with pytest.raises(Unreadable):
            decompress_zstd(body, 1000)


def test_what_is_damaged_is_unreadable() -> None:
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(b"0123456789" * 9))
    packed[-1] ^= 1
    with pytest.raises(Unreadable, match="checksum"):
        decompress_zstd(bytes(packed), 1000)


def test_the_cap_is_exact_over_all_frames() -> None:
    for packed in (zstandard.compress(bytes(1000)), zstandard.compress(bytes(500)) * 2):
        assert decompress_zstd(packed, 1000) == bytes(1000)
        with pytest.raises(TooLarge, match="999 bytes unpacked"):
            decompress_zstd(packed, 999)


def test_frame_of_false_size_is_refused() -> None:
    """The size in a frame's head is whatever the sender wrote there."""
    packed = bytearray(zstandard.ZstdCompressor(write_content_size=True).compress(bytes(60_000)))
    told = zstandard.get_frame_parameters(bytes(packed)).content_size
    assert told == 60_000
    place = packed.index((60_000 - 256).to_bytes(2, "little"))
    packed[place : place + 2] = (10).to_bytes(2, "little")
    with pytest.raises((Unreadable, TooLarge)):
        decompress_zstd(bytes(packed), 1000)


@pytest.mark.parametrize("frames", [1, 50])
def test_a_bomb_stops_at_the_cap_in_memory_too(frames: int) -> None:
    """Up to 30,000 times as much content as body; what is held is the cap and a window."""
    bomb = streamed(*[bytes(1 << 20)] * (200 // frames)) * frames
    assert len(bomb) < 40_000
    tracemalloc.start()
    with pytest.raises(TooLarge):
        decompress_zstd(bomb, 1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


@pytest.mark.parametrize("log", [24, 27, 30])
def test_a_window_beyond_8_mb_is_refused_before_it_is_made(log: int) -> None:
    frame = streamed(b"tiny", window_log=log)
    assert zstandard.get_frame_parameters(frame).window_size == 1 << log
    for packed in (frame, zstandard.compress(b"first") + frame):
        with pytest.raises(Unreadable, match="window may have 8 MB"):
            decompress_zstd(packed, 1 << 26)
    assert decompress_zstd(streamed(b"tiny", window_log=23), 4) == b"tiny"


def test_frames_are_bounded_in_number() -> None:
    one = zstandard.compress(b"x")
    assert decompress_zstd(one * 64, 64) == b"x" * 64
    with pytest.raises(Unreadable, match="64 frames"):
        decompress_zstd(one * 65, 65)


def test_content_as_large_as_a_server_takes_by_default() -> None:
    most = Settings.model_fields["body_bytes"].default
    assert decompress_zstd(zstandard.compress(bytes(most)), most) == bytes(most)


# -- over HTTP --------------------------------------------------------------------------


def test_samples_rows_and_specs_may_be_packed(client: httpx.Client, name: str) -> None:
    url = f"/v1/models/{name}"
    assert client.put(url, content=zstandard.compress(b"{}"), headers=ZSTD).status_code == 201
    samples = zstandard.compress(json.dumps({"x": [[0], [1]] * 20, "y": [0, 1] * 20}).encode())
    for path in ("samples", "asset"):
        learned = client.post(f"{url}/{path}", content=samples, headers=ZSTD)
        assert learned.json()["learned"] == 40
    in_lines = {**ZSTD, "Content-Type": "text/csv"}
    learned = client.post(
        f"{url}/samples?label=2", content=zstandard.compress(b"0,0\n1,1\n"), headers=in_lines
    )
    assert learned.json()["learned"] == 2
    said = client.post(
        f"{url}/predict", content=zstandard.compress(b'{"x": [[0], [1]]}'), headers=ZSTD
    )
    assert said.json()["prediction"] == [0, 1]
    assert "content-encoding" not in said.headers
    tensor = {"name": "x", "shape": [1, 1], "datatype": "FP64", "data": [0.0]}
    packed = zstandard.compress(json.dumps({"inputs": [tensor]}).encode())
    said = client.post(f"/v2/models/{name}/infer", content=packed, headers=ZSTD)
    assert said.json()["outputs"][0]["data"] == [0]


def test_refusals_leave_the_model_as_it_was(client: httpx.Client, name: str) -> None:
    url = f"/v1/models/{name}"
    client.put(url)
    body = zstandard.compress(b'{"x": [[0], [1]], "y": [0, 1]}')
    bomb = streamed(*[bytes(1 << 20)] * 65)
    for content, told in (
        (body[:-1], (400, "unreadable")),
        (body + b"x", (400, "unreadable")),
        (b'{"x": [0], "y": 0}', (400, "unreadable")),
        (streamed(b"{}", window_log=27), (400, "unreadable")),
        (bomb, (413, "too-large")),
    ):
        answer = client.post(f"{url}/samples", content=content, headers=ZSTD)
        assert problem(answer) == told
    assert client.get(url).json()["sequence"] == 0
