"""Semiparametric support vector regression by decomposition (Lee and Wright 2009).

`pdsg` and `mpd` solve the subproblems.
"""
