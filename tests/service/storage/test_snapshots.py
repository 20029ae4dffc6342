"""Snapshots: what is read is what was written, bit for bit, or it is said to be damaged."""

import contextlib
import hashlib
import io
import os
import pickle
import shutil
import struct
import threading
import warnings
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from wolfstream.service.storage import snapshot_format as archives
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import (
    DamagedSnapshot,
    State,
    decode_state,
    read_plain,
    read_state,
    write_state,
)

HEADER_BYTES = 8 + 32
STATE = State(
    {"sequence": 7, "heads": {"asset": {"classes": ["a", 1, True]}}},
    {"asset.b": np.arange(6.0).reshape(2, 3), "working_set.codes": np.array([1, -1])},
)


def state_at(sequence: int) -> State:
    return STATE._replace(plain=STATE.plain | {"sequence": sequence})


def assert_same(state: State, expected: State) -> None:
    assert state.plain == expected.plain
    assert state.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert state.arrays[name].dtype == array.dtype
        assert state.arrays[name].shape == array.shape
        assert state.arrays[name].tobytes() == array.tobytes()


def with_digest(body: bytes) -> bytes:
    """A snapshot file of this body whose checksum is right."""
    return WRITTEN_MAGIC + hashlib.sha256(body).digest() + body


def archive(**content: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **content)
    return file.getvalue()


@pytest.fixture
def snapshots(tmp_path: Path) -> SnapshotFiles:
    return SnapshotFiles(tmp_path / "snapshots", kept=2)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that every example overwrites."""
    return tmp_path_factory.mktemp("snapshot") / "state.snapshot"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "state.snapshot"
    write_state(path, STATE)
    return path.read_bytes()


WRITTEN_MAGIC = b"WOLFSN\x00\x01"
PLAIN_BYTES = np.frombuffer(b"{}", np.uint8)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
ARRAYS = arrays.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.uint8]),
    arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
)
NAMES = st.from_regex(r"(working_set|asset)\.[a-z]{1,8}", fullmatch=True)


class TestRoundTrip:
    def test_of_a_state(self, scratch: Path):
        write_state(scratch, STATE)
        assert_same(read_state(scratch), STATE)

    @given(plain=st.dictionaries(st.text(max_size=3), PLAIN, max_size=3))
    def test_of_anything_plain(self, scratch: Path, plain: dict[str, Any]):
        write_state(scratch, State(plain, {}))
        again = read_state(scratch).plain
        assert repr(again) == repr(plain)

    @given(named=st.dictionaries(NAMES, ARRAYS, max_size=3))
    def test_of_any_arrays_bit_for_bit(self, scratch: Path, named: dict[str, Any]):
        write_state(scratch, State({}, named))
        assert_same(read_state(scratch), State({}, named))

    def test_of_nan_infinity_and_minus_zero(self, scratch: Path):
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324])
        write_state(scratch, State({}, {"a": special}))
        assert read_state(scratch).arrays["a"].tobytes() == special.tobytes()

    @given(plain=st.dictionaries(st.text(max_size=3), PLAIN, max_size=3))
    def test_the_plain_part_is_read_without_the_arrays(self, scratch: Path, plain: dict[str, Any]):
        write_state(scratch, State(plain, STATE.arrays))
        assert repr(read_plain(scratch)) == repr(plain)

    def test_arrays_need_not_be_contiguous(self, scratch: Path):
        every_other = np.arange(20.0).reshape(4, 5).T[::2]
        write_state(scratch, State({}, {"a": every_other}))
        np.testing.assert_array_equal(read_state(scratch).arrays["a"], every_other)

    def test_the_file_begins_with_magic_and_digest(self, whole: bytes):
        assert whole == with_digest(whole[HEADER_BYTES:])

    def test_the_same_state_gives_the_same_arrays_file_after_file(self, scratch: Path):
        for _ in range(2):
            write_state(scratch, STATE)
            write_state(scratch, read_state(scratch))
            assert_same(read_state(scratch), STATE)


class TestKeeping:
    def test_nothing_at_first(self, snapshots: SnapshotFiles):
        assert snapshots.sequences(1) == []

    @pytest.mark.parametrize("kept", [2, 3, 4, 7])
    def test_as_many_as_are_asked_for(self, tmp_path: Path, kept: int):
        snapshots = SnapshotFiles(tmp_path / "snapshots", kept)
        for sequence in range(1, 7):
            snapshots.save(1, state_at(sequence))
        assert snapshots.sequences(1) == list(range(6, 0, -1))[:kept]

    def test_the_newest_ones(self, snapshots: SnapshotFiles):
        for sequence in (5, 1000, 99, 10**12):
            snapshots.save(1, state_at(sequence))
        assert snapshots.sequences(1) == [10**12, 1000]
        assert_same(snapshots.load(1, 10**12), state_at(10**12))
        assert_same(snapshots.load(1, 1000), state_at(1000))

    def test_each_model_has_its_own(self, snapshots: SnapshotFiles):
        for sequence in (1, 2, 3):
            snapshots.save(1, state_at(sequence))
        snapshots.save(11, state_at(1))
        assert snapshots.sequences(1) == [3, 2]
        assert snapshots.sequences(11) == [1]

    def test_a_snapshot_may_be_written_again(self, snapshots: SnapshotFiles):
        snapshots.save(1, STATE)
        other = STATE._replace(arrays={"asset.b": np.ones(3)})
        snapshots.save(1, other)
        assert_same(snapshots.load(1, 7), other)
        assert snapshots.sequences(1) == [7]

    def test_a_deleted_model_has_none(self, snapshots: SnapshotFiles):
        snapshots.save(1, STATE)
        snapshots.save(2, STATE)
        snapshots.delete(1)
        snapshots.delete(3)
        assert snapshots.sequences(1) == []
        assert snapshots.sequences(2) == [7]

    def test_interrupted_deletion_ends_at_next_start(
        self, snapshots: SnapshotFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        for model in (1, 2):
            snapshots.save(model, STATE)
        snapshots.delete(1)
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # the process is killed
            snapshots.delete(2)
        assert snapshots.sequences(2) == []
        assert [path.name for path in (tmp_path / "snapshots").iterdir()] == ["2.deleted"]
        snapshots.set_others_aside(set())
        assert list((tmp_path / "snapshots").iterdir()) == []

    def test_those_of_unknown_models_are_set_aside(self, snapshots: SnapshotFiles, tmp_path: Path):
        for model in (1, 2, 12):
            snapshots.save(model, STATE)
        (tmp_path / "snapshots" / "notes").mkdir()
        snapshots.set_others_aside({2, 3})
        assert [snapshots.sequences(model) for model in (1, 2, 12)] == [[], [7], []]
        aside, other, *known = sorted(path.name for path in (tmp_path / "snapshots").iterdir())
        assert known == ["2", "notes"]
        assert aside.startswith("1.aside-")
        assert other.startswith("12.aside-")

    def test_without_a_directory_there_is_nothing_to_forget(self, snapshots: SnapshotFiles):
        snapshots.set_others_aside(set())
        snapshots.delete(1)

    def test_a_new_process_finds_them(self, snapshots: SnapshotFiles, tmp_path: Path):
        snapshots.save(1, STATE)
        assert SnapshotFiles(tmp_path / "snapshots").sequences(1) == [7]


class TestCutShort:
    def test_a_partial_file_is_never_listed(self, snapshots: SnapshotFiles, tmp_path: Path):
        snapshots.save(1, STATE)
        folder = tmp_path / "snapshots" / "1"
        (only,) = folder.iterdir()
        only.with_name(f"{9:020d}.partial").write_bytes(only.read_bytes())
        assert snapshots.sequences(1) == [7]

    def test_what_a_killed_process_left_is_deleted(self, snapshots: SnapshotFiles, tmp_path: Path):
        snapshots.save(1, STATE)
        folder = tmp_path / "snapshots" / "1"
        left = [folder / f"{9:020d}.partial", folder / f"{'a0' * 16}-0123abcd.partial"]
        for path in left:
            path.write_bytes(b"half")
        snapshots.save(1, state_at(8))
        assert [path.exists() for path in left] == [False, True]
        snapshots.pin(1, b"a state")
        assert not left[1].exists()

    def test_what_a_killed_process_left_makes_room_for_the_next(
        self, snapshots: SnapshotFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """On a full disk it takes what the next one needs."""
        snapshots.save(1, STATE)
        left = [
            tmp_path / "snapshots" / "1" / f"{stem}.partial" for stem in (f"{9:020d}", "a" * 32)
        ]
        for path in left:
            path.write_bytes(b"half")
        fsync, at_syncs = os.fsync, list[list[bool]]()
        monkeypatch.setattr(
            os, "fsync", lambda fd: (at_syncs.append([p.exists() for p in left]), fsync(fd))
        )
        snapshots.save(1, state_at(8))
        snapshots.pin(1, b"a state")
        assert at_syncs == [[False, True]] * 2 + [[False, False]] * 2

    def test_a_state_is_pinned_while_a_snapshot_is_saved(
        self, snapshots: SnapshotFiles, monkeypatch: pytest.MonkeyPatch
    ):
        snapshots.save(1, STATE)
        fsync = os.fsync

        def save_meanwhile(file: int) -> None:
            monkeypatch.setattr(os, "fsync", fsync)
            fsync(file)
            snapshots.save(1, state_at(8))

        monkeypatch.setattr(os, "fsync", save_meanwhile)
        name = snapshots.pin(1, b"a state")
        assert snapshots.pinned_content(1, name) == b"a state"

    @pytest.mark.parametrize("call", ["fsync", "rename"])
    def test_a_failed_write_leaves_the_older_ones(
        self, snapshots: SnapshotFiles, monkeypatch: pytest.MonkeyPatch, call: str
    ):
        for sequence in (6, 7):  # as many as are kept
            snapshots.save(1, state_at(sequence))

        def fail(*_: Any) -> None:
            raise OSError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(*{"fsync": (os, "fsync"), "rename": (Path, "rename")}[call], fail)
            with pytest.raises(OSError, match="no space left"):
                snapshots.save(1, state_at(8))
        assert snapshots.sequences(1) == [7, 6]
        for sequence in (6, 7):
            assert_same(snapshots.load(1, sequence), state_at(sequence))
        snapshots.save(1, state_at(8))
        assert snapshots.sequences(1) == [8, 7]

    def test_the_oldest_is_there_until_the_new_one_is_durable(
        self, snapshots: SnapshotFiles, monkeypatch: pytest.MonkeyPatch
    ):
        """Durable is what was synced: its bytes, then its name."""
        for sequence in (6, 7):
            snapshots.save(1, state_at(sequence))
        fsync, at_syncs = os.fsync, list[list[int]]()
        monkeypatch.setattr(
            os, "fsync", lambda file: (at_syncs.append(snapshots.sequences(1)), fsync(file))
        )
        snapshots.save(1, state_at(8))
        assert at_syncs == [[7, 6], [8, 7, 6]]
        assert snapshots.sequences(1) == [8, 7]

    def test_bytes_are_on_disk_before_the_name_is(
        self, snapshots: SnapshotFiles, monkeypatch: pytest.MonkeyPatch
    ):
        happened: list[str] = []
        fsync, rename = os.fsync, Path.rename
        monkeypatch.setattr(os, "fsync", lambda fd: (happened.append("fsync"), fsync(fd)))
        monkeypatch.setattr(
            Path, "rename", lambda path, to: (happened.append("rename"), rename(path, to))[1]
        )
        snapshots.save(1, STATE)
        # Before them, the names of the directories that are new.
        assert happened == ["fsync", "fsync", "fsync", "rename", "fsync"]

    def test_other_files_are_never_listed(self, snapshots: SnapshotFiles, tmp_path: Path):
        snapshots.save(1, STATE)
        for name in ("notes.txt", "latest.snapshot", "1.5.snapshot", "-3.snapshot", ".snapshot"):
            (tmp_path / "snapshots" / "1" / name).write_bytes(b"")
        assert snapshots.sequences(1) == [7]


class TestDamage:
    def damaged(self, path: Path, content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(DamagedSnapshot) as caught:
            read_state(path)
        assert path.name in str(caught.value)
        # It may look whole where only the plain part is looked at, and fails in no other way.
        with contextlib.suppress(DamagedSnapshot):
            read_plain(path)
        return str(caught.value)

    def test_a_missing_file(self, snapshots: SnapshotFiles):
        with pytest.raises(DamagedSnapshot, match="cannot be read"):
            snapshots.load(1, 5)

    def test_a_directory_in_its_place(self, tmp_path: Path):
        with pytest.raises(DamagedSnapshot, match="cannot be read"):
            read_state(tmp_path)

    @pytest.mark.parametrize(
        "length", [0, 1, 7, 8, 9, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, -1, -22]
    )
    def test_truncated_where_a_part_ends(self, scratch: Path, whole: bytes, length: int):
        self.damaged(scratch, whole[:length])

    @given(data=st.data())
    def test_truncated_anywhere(self, scratch: Path, whole: bytes, data: st.DataObject):
        self.damaged(scratch, whole[: data.draw(st.integers(0, len(whole) - 1))])

    @given(data=st.data())
    def test_any_byte_changed(self, scratch: Path, whole: bytes, data: st.DataObject):
        at = data.draw(st.integers(0, len(whole) - 1))
        changed = bytearray(whole)
        changed[at] ^= data.draw(st.integers(1, 255))
        self.damaged(scratch, bytes(changed))

    @given(more=st.binary(min_size=1, max_size=50))
    def test_anything_behind_its_end(self, scratch: Path, whole: bytes, more: bytes):
        self.damaged(scratch, whole + more)

    @given(content=st.binary(max_size=100))
    def test_any_other_bytes(self, scratch: Path, content: bytes):
        self.damaged(scratch, content)
        self.damaged(scratch, WRITTEN_MAGIC + content)

    def test_zeros_of_the_same_length(self, scratch: Path, whole: bytes):
        self.damaged(scratch, bytes(len(whole)))
        self.damaged(scratch, whole[:HEADER_BYTES] + bytes(len(whole) - HEADER_BYTES))

    def test_another_version(self, scratch: Path, whole: bytes):
        said = self.damaged(scratch, WRITTEN_MAGIC[:-1] + b"\x02" + whole[8:])
        assert "not a snapshot of this version" in said

    def test_an_archive_without_the_plain_part(self, scratch: Path):
        self.damaged(scratch, with_digest(archive(x=np.arange(3))))

    def test_a_plain_part_that_is_not_json(self, scratch: Path):
        self.damaged(scratch, with_digest(archive(plain=np.frombuffer(b"{", np.uint8))))

    def test_not_an_archive(self, scratch: Path):
        self.damaged(scratch, with_digest(b"no archive at all"))

    def test_a_truncated_archive(self, scratch: Path, whole: bytes):
        self.damaged(scratch, with_digest(whole[HEADER_BYTES:-30]))


def entry_of(shape: str, descr: str, data: bytes = b"") -> bytes:
    """An array's entry whose header says anything."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def zipped(entries: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        for name, content in entries:
            archive.writestr(name, content)
    return file.getvalue()


ZEROS = entry_of("(1000,)", "'<f8'", bytes(8000))
MADE = {
    "deflated": (zipped([("x.npy", ZEROS)], zipfile.ZIP_DEFLATED), "compressed"),
    "a name twice": (zipped([("x.npy", ZEROS), ("x.npy", ZEROS)]), "two arrays of one name"),
    "no array": (zipped([("x.txt", b"x")]), "no arrays"),
    "too many arrays": (zipped([(f"{i}.npy", b"") for i in range(4097)]), "more than 4096"),
    "a giant shape": (zipped([("x.npy", entry_of("(10**12,)", "'<f8'"))]), "cannot be decoded"),
    "more than there is": (zipped([("x.npy", entry_of("(2**40, 2**40)", "'<f8'"))]), "decoded"),
    "an empty giant": (zipped([("x.npy", entry_of("(0, 9" + "0" * 30 + ")", "'<f8'"))]), "decoded"),
    "less than there is": (zipped([("x.npy", entry_of("(1,)", "'<f8'", bytes(9)))]), "shape"),
    "below zero": (zipped([("x.npy", entry_of("(-1, -1)", "'<f8'", bytes(8)))]), "shape"),
    "records": (zipped([("x.npy", entry_of("(1,)", "[('a', '<f8')]", bytes(8)))]), "not of num"),
    "texts": (zipped([("x.npy", entry_of("(1,)", "'<U2'", bytes(8)))]), "not of numbers"),
    "the other end first": (zipped([("x.npy", entry_of("(1,)", "'>f8'", bytes(8)))]), "numbers"),
    "a header of code": (zipped([("x.npy", entry_of("exit()", "'<f8'"))]), "cannot be decoded"),
    "deep JSON": (archive(plain=np.frombuffer(b"[" * 200_000, np.uint8)), "cannot be decoded"),
    "a list": (archive(plain=np.frombuffer(b"[]", np.uint8)), "no object"),
}


class TestMadeByAnybody:
    """The checksum is right: it says nothing of who made the archive."""

    @pytest.mark.parametrize("kind", MADE)
    def test_it_is_refused(self, kind: str):
        body, said = MADE[kind]
        with pytest.raises(DamagedSnapshot, match=said):
            decode_state(with_digest(body), "it")

    def test_entries_that_share_their_bytes_cannot_claim_more_than_there_is(self):
        body = zipped([("x.npy", ZEROS)])
        at, end = body.index(b"PK\x01\x02"), body.index(b"PK\x05\x06")
        twice = body[at:end] + body[at:end].replace(b"x.npy", b"y.npy")
        tail = body[end : end + 8] + struct.pack("<HHIIH", 2, 2, len(twice), at, 0)
        with pytest.raises(DamagedSnapshot, match="claim more bytes than it has"):
            decode_state(with_digest(body[:at] + twice + tail), "it")

    def test_a_plain_part_may_be_bounded(self):
        content = with_digest(archive(plain=np.frombuffer(b'{"a": 1}', np.uint8)))
        assert decode_state(content, "it", 8).plain == {"a": 1}
        with pytest.raises(DamagedSnapshot, match="plain part has more than 7 bytes"):
            decode_state(content, "it", 7)

    def test_what_is_read_may_be_changed(self):
        """Compiled code takes a read-only array, or an unaligned one, for another type."""
        array = decode_state(with_digest(archive(plain=PLAIN_BYTES, x=np.arange(3.0))), "it")
        assert array.arrays["x"].flags.writeable
        assert array.arrays["x"].flags.aligned

    def test_the_order_of_columns_is_kept(self):
        given = np.asfortranarray(np.arange(6.0).reshape(2, 3))
        read = decode_state(with_digest(archive(plain=PLAIN_BYTES, x=given)), "it").arrays["x"]
        np.testing.assert_array_equal(read, given)
        assert read.flags.f_contiguous


class TestNoPickle:
    """A file that runs code when it is unpickled, in every place where a pickle could stand."""

    @pytest.fixture
    def trap(self, tmp_path: Path) -> Any:
        sprung = tmp_path / "sprung"

        class Trap:
            def __reduce__(self) -> Any:
                return Path.touch, (sprung,)

        yield Trap()
        assert not sprung.exists()

    def test_an_array_of_objects(self, scratch: Path, trap: Any):
        plain = np.frombuffer(b"{}", np.uint8)
        objects = np.array([trap], object)
        for body in (archive(plain=plain, x=objects), archive(plain=objects)):
            scratch.write_bytes(with_digest(body))
            with pytest.raises(DamagedSnapshot, match="not of numbers"):
                read_state(scratch)

    def test_a_pickle_as_the_body(self, scratch: Path, trap: Any):
        scratch.write_bytes(with_digest(pickle.dumps(trap)))
        with pytest.raises(DamagedSnapshot):
            read_state(scratch)

    def test_none_is_written(self, scratch: Path, trap: Any):
        scratch.unlink(missing_ok=True)
        with pytest.raises(ValueError, match="allow_pickle=False"):
            write_state(scratch, State({}, {"x": np.array([trap], object)}))
        assert not scratch.exists()

    def test_the_trap_works(self, tmp_path: Path):
        class Trap:
            def __reduce__(self) -> Any:
                return Path.touch, (tmp_path / "sprung",)

        pickle.loads(pickle.dumps(Trap()))  # noqa: S301
        assert (tmp_path / "sprung").exists()


def test_a_description_is_of_the_file(snapshots: SnapshotFiles, tmp_path: Path) -> None:
    assert snapshots.describe(1, 7) is snapshots.written(1, 7) is None
    snapshots.save(1, STATE)
    (file,) = tmp_path.glob("snapshots/1/*")
    assert snapshots.name(1, 7) == str(file)
    os.utime(file, (1e9, 1e9))
    at = datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
    assert snapshots.written(1, 7) == at
    assert snapshots.describe(1, 7) == (file.stat().st_size, at, STATE.plain)
    assert snapshots.content(1, 7) == file.read_bytes()
    file.write_bytes(b"damaged")
    os.utime(file, (1e9, 1e9))
    assert snapshots.describe(1, 7) == (7, at, None)


def test_one_thread_at_a_time_has_a_header_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The parser of some versions of Python fails when two threads are in it."""
    write_state(tmp_path / "7", STATE)
    both, met = threading.Barrier(2), list[str]()

    def parse(file: Any) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
            met.append("two threads")
        return np.lib.format.read_array_header_1_0(file)

    monkeypatch.setitem(archives._READ_HEADER, (1, 0), parse)
    threads = [
        threading.Thread(target=read, args=(tmp_path / "7",)) for read in (read_state, read_plain)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []
