"""One quadratic problem on the unit simplex.

Its state, the steps that change it, and how one-versus-one numbers its pairs of classes.

It may import nothing of the other packages.
It is imported by `service.heads`, `solver.estimators`, `solver.working_set`,
`solver.frank_wolfe`.
"""
