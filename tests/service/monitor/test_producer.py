"""The task that watches models does not keep those that are deleted."""

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

from tests.service.engine.test_group_delay import with_engine
from tests.service.monitor.conftest import SideFiles
from tests.service.specs import read_papers_spec
from wolfstream.service.engine.facade import Engine
from wolfstream.service.model.live import Model
from wolfstream.service.monitor import producer
from wolfstream.service.monitor.alerts import Alerts
from wolfstream.service.monitor.points import Points
from wolfstream.service.monitor.producer import Monitor

SMALL = {"working_set": {"max_size": 20}, "asset": None}


def test_deleted_models_are_freed_at_once(
    tmp_path: Path, side_file: SideFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "_EVENT_SECONDS", 0.01)
    monkeypatch.setattr(producer, "POINT_SECONDS", 10**9)  # the next point never comes
    file = side_file(tmp_path)
    alerts, points = Alerts(file, posted=False), Points(file)

    async def delete_watched(engine: Engine) -> list[str]:
        models = []
        for i in range(50):
            model, _ = await engine.orders.create(f"small{i}", read_papers_spec(SMALL))
            models.append(weakref.ref[Model](model))
        monitor = Monitor(engine, points, alerts)
        watching = asyncio.create_task(monitor.run())
        while not monitor._meters:  # noqa: ASYNC110  (there is no event for it)
            await asyncio.sleep(0.01)
        monkeypatch.setattr(producer, "_EVENT_SECONDS", 10**9)  # nor does the next look
        await asyncio.sleep(0.1)
        del model
        for i in range(50):
            await engine.orders.delete(engine.model(f"small{i}"))
        await asyncio.sleep(0.1)
        gc.collect()
        left = [model.name for ref in models if (model := ref()) is not None]
        watching.cancel()
        return left

    (tmp_path / "data").mkdir()
    assert with_engine(tmp_path / "data", delete_watched) == []
