"""What a department's server is made of: its login, its proxy, its image, its lock file."""
