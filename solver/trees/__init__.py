"""Gradient-boosted trees over histograms of binned columns, and the rows that they are fitted to.

Columns of numbers and of categories become bins. Each round grows one tree on the gradients of a
loss, whose leaves hold a value for each output. It runs on one thread, and equal arrays give equal
bits.
"""
