"""Labelled samples in files (CSV, svmlight, npz, Arrow, Parquet), checked, then read in batches."""
