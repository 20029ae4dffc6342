"""FW, MFW, SWAP and PARTAN on a whole training set, under one driver (Frandi et al. 2012 and 2015).

It may import `solver.simplex`, `solver.kernels`, `solver.rows`.
It is imported by `service.cli`, `service.training`, `solver.estimators`.
"""
