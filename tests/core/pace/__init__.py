"""Tests of the covariance estimators."""
