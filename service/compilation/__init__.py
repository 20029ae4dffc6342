"""Compiled code: what is compiled when.

`compiled_parts` lists the parts of the code, `compiler_process` compiles all in a process of its
own, and `warm_up` those that a server needs first. `solver.compile_cache` chooses the directory of
compiled code.

It may import `service.model`, `service.heads`, `service.spec`.
It is imported by `service.cli`, `service.server`, `service.cluster`, `service.engine`.
"""
