"""Tests of the posteriors."""
