"""Parties that teach a model, by requests and by frames, with keys and without."""

import itertools
import time
from typing import Any

from tests.hard.black_box.calls import GONE, Frames, Refused, call, open_stream
from tests.hard.black_box.parties import ROWS, Labels, Party
from tests.hard.black_box.record import Record

_PAUSE = 0.02


class Poster(Party):
    """Posts samples: most under a key, some of them asking only that they are durable."""

    def __init__(self, record: Record, seed: str, labels: Labels, calls: tuple[str, ...]) -> None:
        super().__init__(record, seed, labels)
        self._calls = calls
        self._keys = itertools.count()
        self._pending: tuple[str, str, dict[str, Any], dict[str, str]] | None = None

    def work(self, url: str) -> None:
        while self._pending or not self.calm:
            if self._pending is None and self.random.random() < 0.2:
                self._post_once(url)
                continue
            if self._pending is None:
                n = self.random.choice([1, 1, 3, 20])
                key = f"poster-{next(self._keys)}"
                wish = {"prefer": "respond-async"} if self.random.random() < 0.3 else {}
                self._pending = key, self._path(), self.samples(n), wish
            key, path, body, wish = self._pending
            try:
                told = call(url, "POST", path, body, idempotency_key=key, **wish)
            except Refused as error:
                error.expect(503)
                time.sleep(_PAUSE)
                continue
            self.record.note_samples(key, len(body["y"]), told)
            # Samples that were only durable are sent again now and then, with the same interval.
            if not wish or self.random.random() < 0.7:
                self._pending = None

    def _post_once(self, url: str) -> None:
        """Without a key: what has no answer may have been learned or not."""
        body = self.samples(self.random.choice([1, 4]))
        n = len(body["y"])
        try:
            told = call(url, "POST", self._path(), body)
        except ConnectionRefusedError:
            raise
        except GONE:
            self.record.note_doubt(n)
            raise
        except Refused as error:
            error.expect(503)
            if error.outcome != "not-learned":
                self.record.note_doubt(n)
        else:
            self.record.note_samples(f"once-{next(self._keys)}", n, told)

    def _path(self) -> str:
        return f"{self.record.path}/{self.random.choice(self._calls)}"


class KeyedStream(Party):
    """A stream with many unanswered samples, whose ids are their keys; it reads in between."""

    def __init__(self, record: Record, seed: str, labels: Labels, packed: bool) -> None:
        super().__init__(record, seed, labels)
        self._packed, self._ids = packed, itertools.count()
        self._unanswered: dict[int, dict[str, Any]] = {}

    def work(self, url: str) -> None:
        producer = f"producer-{self.record.name}"
        with open_stream(url, self.record.path, self._packed, producer) as stream:
            for frame in self._unanswered.values():
                stream.send(frame)
            while self._unanswered or not self.calm:
                while len(self._unanswered) < 16 and not self.calm:
                    stream.send(self._next())
                    if self.random.random() < 0.1:
                        stream.send(self._question())
                self._take(stream.receive(), stream)

    def _next(self) -> dict[str, Any]:
        of_frame = next(self._ids)
        op = self.random.choice(["learn", "learn", "asset"])
        body = self.samples(self.random.choice([1, 1, 1, 5]))
        self._unanswered[of_frame] = {"id": of_frame, "op": op, **body}
        return self._unanswered[of_frame]

    def _question(self) -> dict[str, Any]:
        _, sequence = self.record.durable
        return {"id": f"at {sequence}", "op": "predict", "x": ROWS, "min_sequence": sequence}

    def _take(self, told: Any, stream: Frames) -> None:
        of_frame = told["id"]
        if isinstance(of_frame, str):
            if "error" in told:
                assert told["error"]["status"] in (409, 503), told
            else:
                assert told["sequence"] >= int(of_frame.removeprefix("at "))
                self.record.note_reading(told)
        elif "error" in told:
            assert told["error"]["status"] == 503, told
            time.sleep(_PAUSE)
            stream.send(self._unanswered[of_frame])
        else:
            n = len(self._unanswered.pop(of_frame)["y"])
            self.record.note_samples(f"stream-{of_frame}", n, told)


class KeylessStream(Party):
    """A stream without keys: answers come in order, and samples without one are in doubt."""

    def __init__(self, record: Record, seed: str, labels: Labels, packed: bool) -> None:
        super().__init__(record, seed, labels)
        self._packed, self._ids = packed, itertools.count()

    def work(self, url: str) -> None:
        if self.calm:
            return
        waiting: dict[int, int] = {}
        try:
            with open_stream(url, self.record.path, self._packed) as stream:
                self._speak(stream, waiting)
        finally:
            self.record.note_doubt(sum(waiting.values()))

    def _speak(self, stream: Frames, waiting: dict[int, int]) -> None:
        """Send and receive; waiting: the samples of frames that had no answer so far."""
        last = 0
        while not self.calm or waiting:
            while len(waiting) < 16 and not self.calm:
                of_frame, body = next(self._ids), self.samples(self.random.choice([1, 1, 2]))
                waiting[of_frame] = len(body["y"])
                stream.send({"id": of_frame, "op": "learn", **body})
            told = stream.receive()
            n = waiting.pop(told["id"])
            if "error" in told:
                assert told["error"]["status"] == 503, told
                if told["error"]["outcome"] != "not-learned":
                    self.record.note_doubt(n)
                continue
            assert told["sequence"] > last, "answers of a stream are in the order of its frames"
            last = told["sequence"]
            self.record.note_samples(f"unkeyed-{told['id']}", n, told)
