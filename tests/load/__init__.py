"""Many people at once on the real server, by the protocol that browsers speak to it."""
