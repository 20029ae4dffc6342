"""The part of a model's spec about predicted rows that wait for labels."""

from pydantic import Field

from wolfstream.service.spec.kernel import SpecPart


class PendingSpec(SpecPart):
    """Rows predicted with ids wait for their labels; the oldest are dropped first.

    The ids of as many labelled or dropped rows are remembered.
    """

    max_rows: int = Field(100_000, ge=1, le=10_000_000)
    max_bytes: int = Field(
        64 << 20,
        ge=1 << 16,
        le=1 << 36,
        description="In memory and in a snapshot. The rows of a request free their bytes together.",
    )
    max_age_seconds: float = Field(
        30 * 86_400.0,
        gt=0,
        le=1e9,
        description="By the server's clock, from the prediction to its label.",
    )
