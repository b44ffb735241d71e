"""Reports from static, escaping templates."""
