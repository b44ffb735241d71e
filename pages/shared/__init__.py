"""What the pages share: state, jobs, guards, widgets, charts and the tree picture."""
