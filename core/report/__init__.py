"""The audit as one HTML file that opens offline, without scripts or requests."""
