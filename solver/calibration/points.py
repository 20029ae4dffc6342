"""When a calibration takes its waiting decisions in: at counts of them, whatever the calls."""

PERIOD = 64


def until_next(seen: int) -> int:
    """How many decisions after `seen` are taken in next: at 1, 2, 4, ... 64, 128, 192, ..."""
    if seen >= PERIOD:
        return PERIOD - seen % PERIOD
    return max(1 << seen.bit_length(), 1) - seen
