"""The workbench: page files in ``pages.steps``, what they share in ``pages.shared``."""
