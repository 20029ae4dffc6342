"""FW, MFW, SWAP, PARTAN and SMO on a whole training set, under one driver (Frandi et al.).

It may import `solver.simplex`, `solver.kernels`, `solver.rows`.
It is imported by `service.cli`, `service.training`, `service.compilation`, `solver.estimators`.
"""
