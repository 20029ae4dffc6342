"""Heads: what learns inside a model, a module for each kind.

Each implements the interface in `protocol`: it checks and learns samples, provides a view, saves
and restores. A new kind of head is a new module here; see `kinds`.
"""
