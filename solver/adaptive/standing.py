"""What each learner of a bank is worth at present."""

from typing import Any, NamedTuple

from wolfstream.solver.arrays import Float64Array


class Standing(NamedTuple):
    """Copies, which later samples do not change.

    kinds: the parameters of each learner. weight: (learners,) in the answer, summing to 1.
    recent_loss, overall_loss: (learners,) mean losses over the last 1,000 samples and over all;
    NaN where a learner has had nothing to say.
    """

    kinds: list[dict[str, Any]]
    weight: Float64Array
    recent_loss: Float64Array
    overall_loss: Float64Array

    def rows(self) -> list[dict[str, Any]]:
        """Return one learner after another as plain data; None for NaN."""
        weights, *losses = (column.tolist() for column in self[1:])
        recent, overall = ([None if v != v else v for v in column] for column in losses)
        return [
            {**kind, "weight": weight, "recent_loss": of_recent, "overall_loss": of_all}
            for kind, weight, of_recent, of_all in zip(
                self.kinds, weights, recent, overall, strict=True
            )
        ]
