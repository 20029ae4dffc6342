"""Rows made fit to learn from: running scales, missing values, categories as numbers.

`judging` tells what the texts of a column mean: quantities, moments of time, yes and no, words. It
knows neither tables nor rows nor learners.
"""
