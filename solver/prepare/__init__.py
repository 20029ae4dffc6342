"""Rows made fit to learn from: running scales, missing values, categories as numbers.

It may import nothing of the rest.
It is imported by `service.model`, `service.samples`, `solver.stream`, `solver.adaptive`.
"""
