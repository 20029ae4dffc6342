"""Compiled code: what is compiled when, its cache, and settings of this process.

`compiled_parts` lists the parts of the code, `compiler_process` compiles all in a process of its
own, and `warm_up` those that a server needs first. `compile_cache` chooses the directory of
compiled code; `process` sets the number of threads of a matrix product, gives free memory back, and
says how often Python collects garbage.

It may import `service.model`, `service.heads`, `service.spec`, `solver.stream`,
`solver.frank_wolfe`, `solver.kernels`, `solver.prepare`, `solver.rows`.
It is imported by `service.cli`, `service.server`, `service.cluster`, `service.engine`,
`service.recovery`.
"""
