"""Compiled code: what is compiled when.

`compiled_parts` lists the parts of the code, `compiler_process` compiles all in a process of its
own, and `warm_up` those that a server needs first. `solver.compile_cache` chooses the directory of
compiled code.
"""
