"""What is kept of a stream's past."""

from typing import Any

import numpy as np
import pytest

from wolfstream.solver.working_set.past import EARLIER, MOST_KEPT, RECENT, Past


def past_of(n: int, size: int = 64) -> Past:
    past = Past()
    numbers = np.arange(n)
    for start in range(0, n, size):
        part = numbers[start : start + size]
        past.add(part[:, None].astype(float), part % 3)
    return past


@pytest.mark.parametrize("n", [1, 500, 1024, 1025, 3000, 20_000])
def test_the_last_samples_are_all_there_and_some_before_them(n: int):
    time, X, codes, _ = past_of(n).samples()
    assert time[-RECENT:].tolist() == list(range(max(n - RECENT, 0), n))
    earlier = time[:-RECENT]
    assert len(earlier) <= EARLIER
    assert len(set(np.diff(earlier).tolist())) <= 1
    assert (X[:, 0] == time).all()
    assert (codes == time % 3).all()


def test_it_reaches_back_to_the_first_sample_while_it_can():
    assert past_of(8700).samples()[0][0] == 0
    assert past_of(20_000).samples()[0][0] == 20_000 - RECENT - 16 * EARLIER


@pytest.mark.parametrize("n", [700, 9000])
def test_the_division_into_calls_does_not_matter(n: int):
    def plain(past: Past) -> Any:
        return {name: array.tolist() for name, array in past.state("").items()}

    assert plain(past_of(n, 1)) == plain(past_of(n, 64)) == plain(past_of(n, n))


def test_a_state_goes_on():
    live, again = past_of(2000), Past()
    again.restore("past_", live.state("past_"))
    for past in (live, again):
        past.add(np.zeros((100, 1)), np.zeros(100, np.int64))
    assert all((a == b).all() for a, b in zip(live.samples(), again.samples(), strict=True))


@pytest.mark.parametrize("size", [1, 64, 4096, 100_000])
def test_memory_is_bounded_whatever_the_calls_bring(size: int):
    numbers_of_a_sample = 4  # its place in the stream, one feature, its class and weight
    assert past_of(100_000, size).nbytes <= 8 * numbers_of_a_sample * MOST_KEPT
