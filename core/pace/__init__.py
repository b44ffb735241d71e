"""Adaptive private covariance estimation (PACE-GGM, arXiv 2605.24295)."""
