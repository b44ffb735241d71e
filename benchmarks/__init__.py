"""The papers' tables and speed, each by one command."""
