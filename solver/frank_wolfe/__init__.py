"""Frank-Wolfe on the unit simplex: the quadratic problem, the steps, and the batch methods.

`problem` is the state of one problem, `steps` are what changes it, and `pairs` numbers the pairs of
classes of one-versus-one; the working set uses these three too. The other modules are FW, MFW,
SWAP, PARTAN and SMO on a whole training set, under one driver (Frandi et al.).
"""
