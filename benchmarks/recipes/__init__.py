"""One synthesis recipe a module: ours and its peers, each started in a process of its own."""
