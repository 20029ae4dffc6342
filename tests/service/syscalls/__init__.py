"""A layer under libc: system calls fail where a test says so, and what is not synced is known.

`calls.c` is that layer. `SystemCalls` has calls of this process fail, `disk` makes of a directory
what a disk may have after a loss of power.
"""
