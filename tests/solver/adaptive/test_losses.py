"""Mean losses of learners, compared with a list of all losses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from wolfstream.solver.adaptive.losses import RECENT, Losses

LEARNERS = 3


def nan_means(losses: np.ndarray) -> np.ndarray:
    counts = (~np.isnan(losses)).sum(axis=0)
    return np.where(counts > 0, np.nansum(losses, axis=0) / np.maximum(counts, 1), np.nan)


@pytest.mark.parametrize("block", [1, 7, 64, RECENT])
def test_means_of_last_and_all_samples(block: int):
    rng = np.random.default_rng(block)
    losses, every = Losses(LEARNERS), np.empty((0, LEARNERS))
    while len(every) < 2 * RECENT + 3 * block:
        new = rng.random((block, LEARNERS))
        new[rng.random(new.shape) < 0.1] = np.nan
        new[:, 2] = np.nan  # a learner that never predicts
        losses.add(new)
        every = np.concatenate([every, new])
        if len(every) % (13 * block) and block < RECENT:
            continue
        recent, total = losses.means()
        assert_allclose(recent, nan_means(every[-RECENT:]), rtol=1e-12)
        assert_allclose(total, nan_means(every), rtol=1e-12)
        n = min(len(every), block, RECENT)
        assert_array_equal(losses.last(n), every[-n:])


def test_rows_before_the_first_sample_have_no_losses():
    losses = Losses(LEARNERS)
    losses.add(np.ones((2, LEARNERS)))
    assert np.isnan(losses.last(5)[:3]).all()
    assert_array_equal(losses.last(5)[3:], np.ones((2, LEARNERS)))


@pytest.mark.parametrize("samples", [0, 1, 40, RECENT - 1, RECENT, RECENT + 1, 2 * RECENT + 5])
def test_restored_losses_continue(samples: int):
    rng = np.random.default_rng(samples)
    losses, restored = Losses(LEARNERS), Losses(LEARNERS)
    for start in range(0, samples, 17):
        losses.add(rng.random((min(17, samples - start), LEARNERS)))
    restored.restore(losses.state())
    for _ in range(3):
        new = rng.random((RECENT // 2, LEARNERS))
        losses.add(new)
        restored.add(new)
        for live, saved in zip(losses.means(), restored.means(), strict=True):
            assert_array_equal(live, saved)


def test_ring_grows_to_its_bound_only():
    losses, bound = Losses(LEARNERS), Losses(LEARNERS).nbytes
    for _ in range(5):
        losses.add(np.zeros((RECENT // 2, LEARNERS)))
        assert losses.recent.nbytes + losses.total.nbytes + losses.count.nbytes <= bound
