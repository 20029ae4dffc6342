"""The points of a stream at which a calibration is updated: counts of decisions alone.

An update takes about 0.3 ms, which must be a small part of the time of learning. With a period of
256 decisions instead of 64 the log loss is 0.8% larger in the mean over the streams of
`benchmarks.calibration`, with 1,024 it is 5% larger.
"""

# The period up to _MANY decisions, and that from there on.
_FIRST, _MANY, _LAST = 64, 1024, 256


def until_next(seen: int, phase: int = 0) -> int:
    """Return the number of decisions until the next update.

    Updates are at 1, 2, 4, ... 64 decisions, then every 64 up to 1,024, and from there on every
    256, `phase` before the multiples of 256.

    seen: the number of decisions so far.
    phase: with different ones, heads that learn the same samples are updated at different samples.
    """
    if seen < _FIRST:
        return max(1 << seen.bit_length(), 1) - seen
    if seen < _MANY:
        return _FIRST - seen % _FIRST
    return _LAST - (seen + phase) % _LAST
