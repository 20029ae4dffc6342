"""Labelled samples in files: CSV, svmlight and npz, checked as a whole and read batch by batch.

It may import `solver.rows`.
It is imported by `service.cli`, `service.web.formats`, `service.training`.
"""
