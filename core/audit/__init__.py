"""The audit room: how good and how fair synthetic rows are, and which figures may be published."""
