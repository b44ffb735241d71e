"""The audit room: how good and how fair synthetic rows are, and which figures may be published.

Messages and logs show representations, so nothing here that real rows may enter has one with
numbers in it: findings are declared with ``repr=False``, and figures and scores write their own.
"""
