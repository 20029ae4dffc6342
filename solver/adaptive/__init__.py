"""A bank of online learners on shared random features that finds its own parameters.

Prepared rows become features of low order. Second-order and first-order learners with a grid of
horizons, losses and steps share them, and nearest neighbours look at the last rows; temperatures,
stackers and fixed share turn all their answers into one. Boosted trees over the last rows add to
that, and so do the labels just before a row. The cost of a sample and the memory are constant.
"""
