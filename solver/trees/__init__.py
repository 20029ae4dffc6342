"""Gradient-boosted trees over histograms of binned columns.

Columns of numbers and of categories become bins; a round grows one tree on the gradients of a
loss, its leaves hold a value for each output. All of it is one thread and the same bits for the
same arrays.

It may import nothing of the rest.
It is imported by `service.heads`, `solver.stream`.
"""
