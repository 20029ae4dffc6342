"""Settings of the native code in this process.

`compile_cache` chooses the directory of compiled code, `process` sets the number of threads of a
matrix product, gives free memory back, and says how often Python collects garbage.

It may import nothing of the other packages.
It is imported by `service.cli`, `service.web`, `service.workers`, `service.engine`.
"""
