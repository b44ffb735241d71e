"""Justitia's headless package: private and fair releases of a sensitive table."""
