"""Posteriors from privatised statistics (PUMBA, arXiv 2604.24817)."""
