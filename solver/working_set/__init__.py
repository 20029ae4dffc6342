"""SFW and MSFW, the online Frank-Wolfe method on a working set (Ouyang and Gray 2010).

`learner` takes a stream, `class_pairs` has what it learns of each pair of classes; `sfw` holds
Algorithm 1, `tube` its like for regression, `ball` the enclosing ball.

It may import `solver.frank_wolfe`, `solver.kernels`, `solver.rows`.
It is imported by `service.heads`, `solver.estimators`, `solver.stream`.
"""
