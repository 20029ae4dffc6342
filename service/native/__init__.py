"""Settings of the native code in this process.

`compile_cache` chooses the directory of compiled code, `threads` sets the number of threads of a
matrix product, `allocator` gives free memory back, and `garbage` says how often Python collects
garbage.

It may import nothing of the other packages.
It is imported by `service.cli`, `service.web`, `service.workers`, `service.engine`.
"""
