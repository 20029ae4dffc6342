"""Reads and checks rows, labels and weights of decoded bodies; encodes samples as records.

Each task has a module for its y (`tasks`): `labels` and `numbers`.
"""
