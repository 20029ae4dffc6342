"""ASSET: robust stochastic subgradient steps on approximate kernel features (Lee, Wright 2012)."""
