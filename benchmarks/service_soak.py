"""Many websocket streams for a while: no error, and memory that stays where it is."""

import asyncio
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np

from benchmarks.bodies import PAPERS, full_model, learn_frames, two_classes
from benchmarks.frames import open_streams
from benchmarks.load import Load, load_of, running
from benchmarks.processes import Server, wolfstream

STREAMS, MODELS, WINDOW, SIZE = 256, 4, 4, 500
_WARM_SECONDS = 5.0


def soak(folder: Path, seconds: float) -> None:
    """A table of the memory over time."""
    with wolfstream(folder / "soak") as ours:
        paths = [full_model(ours.url, f"soak{i}", PAPERS, SIZE) for i in range(MODELS)]
        load, memory = running(_soak(ours, paths, seconds))
    # What the first seconds touch for the first time is no leak.
    times, mb = np.array(memory).T
    settled = mb[times >= _WARM_SECONDS] if times[-1] > 2 * _WARM_SECONDS else mb
    slope = np.polyfit(times[-len(settled) :], settled, 1)[0] * 60.0
    print(
        f"### {STREAMS} websocket streams of {MODELS} models for {seconds:.0f} s, JSON and "
        f"MessagePack\n\nSets of at most {SIZE} samples, full from the start; no error.\n\n"
        "| samples/s | p50 ms | p99 ms | memory after "
        f"{_WARM_SECONDS:.0f} s, MB | in the middle | at the end | largest | MB a minute |\n"
        "|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        f"| {load.rate:,.0f} | {load.p50_ms:.1f} | {load.p99_ms:.1f} | {settled[0]:.1f} | "
        f"{settled[len(settled) // 2]:.1f} | {settled[-1]:.1f} | {settled.max():.1f} | "
        f"{slope:+.1f} |\n",
        flush=True,
    )


async def _soak(
    ours: Server, paths: list[str], seconds: float
) -> tuple[Load, list[tuple[float, float]]]:
    samples = two_classes(2_000, 5)
    frames = {name: learn_frames(samples, name == "msgpack") for name in ("json", "msgpack")}
    start = time.perf_counter()
    wanted = []
    for i in range(STREAMS):
        name = "msgpack" if i % 2 else "json"
        frames_of = _until(start + seconds, frames[name])
        wanted.append((f"{paths[i % MODELS]}/stream", f"wolfstream.v1.{name}", frames_of))
    streams = await open_streams(ours.url, wanted, WINDOW)
    for stream in streams:
        stream.start()
    memory = []
    while (now := time.perf_counter() - start) < seconds:
        memory.append((now, ours.resident_mb()))
        await asyncio.sleep(min(1.0, seconds / 20))
    await asyncio.gather(*(stream.ended for stream in streams))
    taken = time.perf_counter() - start
    for stream in streams:
        stream.close()
    return load_of([s for stream in streams for s in stream.latencies], taken), memory


def _until(end: float, frames: list[bytes]) -> Iterator[bytes]:
    """Yield the frames over and over until a moment."""
    for data in cycle(frames):
        if time.perf_counter() >= end:
            return
        yield data
