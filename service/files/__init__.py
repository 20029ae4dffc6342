"""Labelled samples in files (CSV, svmlight, npz, Arrow, Parquet), checked, then read in batches.

It may import `solver.prepare`, `solver.rows`.
It is imported by `service.cli`, `service.client`, `service.offline`, `service.web.formats`,
`service.samples`.
"""
