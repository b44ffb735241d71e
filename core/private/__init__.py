"""Everything that can hurt a person, and nothing else: rows, ledger, noise, and one door."""
