"""Tests of the numerics, among them the papers' algorithms in plain numpy as oracles."""
