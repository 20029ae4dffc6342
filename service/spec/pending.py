"""The part of a model's spec about predicted rows that wait for labels."""

from pydantic import Field

from wolfstream.service.spec.kernel import SpecPart


class PendingSpec(SpecPart):
    """Rows that were predicted with ids wait for their labels; the oldest leave first.

    The ids of as many rows that were labelled or dropped are remembered.
    """

    max_rows: int = Field(100_000, ge=1, le=10_000_000)
    max_bytes: int = Field(
        64 << 20,
        ge=1 << 16,
        le=1 << 36,
        description="Of memory and of a snapshot. Rows of one request leave their bytes together.",
    )
    max_age_seconds: float = Field(
        30 * 86_400.0,
        gt=0,
        le=1e9,
        description="By the server's clock, from the prediction to its label.",
    )
