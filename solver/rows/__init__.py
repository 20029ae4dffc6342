"""Rows of samples, dense or sparse, and slots to store them in."""
