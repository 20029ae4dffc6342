"""What texts of a table mean: quantities, moments of time, yes and no, words; and kinds of columns.

It reads texts and knows nothing of tables, rows or learners.

It may import nothing of the rest.
It is imported by `service.heads`, `solver.stream`, `solver.prepare`.
"""
