"""What must be settled before compiled code runs.

The directory that keeps machine code, and the number of threads of a matrix product.

It may import nothing of the other packages.
It is imported by `service.cli`, `service.web`, `service.workers`, `service.engine`.
"""
