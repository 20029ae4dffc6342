"""Kernels and their values for blocks of rows.

Also rows of the kernel matrix within a budget, and the choice of gamma.
"""
