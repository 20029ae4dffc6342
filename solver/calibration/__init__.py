"""How sure a learner may be: calibrated probabilities, conformal sets and intervals.

It may import nothing of the rest.
It is imported by `service.notebook`, `service.training`, `service.heads`, `solver.estimators`,
`solver.stream`, `solver.adaptive`.
"""
