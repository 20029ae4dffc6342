"""SFW and MSFW, the online Frank-Wolfe method on a working set (Ouyang and Gray 2010).

`learner` takes a stream, `class_pairs` has what it learns of each pair of classes; `sfw` holds
Algorithm 1, `tube` its like for regression, `ball` the enclosing ball.
"""
