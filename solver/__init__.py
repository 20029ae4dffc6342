"""wolfstream's numerics: arrays in, arrays out.

Each package holds the algorithms of one paper, or what they share; `docs/papers.md` lists every
algorithm and equation with the function that computes it. Rows come dense or sparse
(`rows.matrix.Matrix`): `rows`, `kernels` and the feature maps of `asset` know the difference, and
everything else hands them on. Nothing here does input or output, knows a clock or starts a thread,
but for `compile_cache`, which names the directory of the machine code, and `refits`.

`wolfstream` gives the scikit-learn estimators of `solver.estimators` their public names.
"""
