"""When calibrations take in what waits."""

from wolfstream.solver.calibration.points import until_next


def points(phase: int, up_to: int) -> list[int]:
    """The counts at which one takes in."""
    found, seen = [], 0
    while seen < up_to:
        seen += until_next(seen, phase)
        found.append(seen)
    return found


def test_a_phase_moves_the_points_of_long_streams():
    assert points(0, 200) == points(80, 200) == [1, 2, 4, 8, 16, 32, 64, 128, 192, 256]
    assert points(0, 1500)[-3:] == [1024, 1280, 1536]
    assert points(80, 1500)[-3:] == [1200, 1456, 1712]
    assert not set(points(80, 20_000)) & set(points(208, 20_000)) - set(points(0, 1024))
