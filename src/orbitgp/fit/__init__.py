"""The order in which a fit does its work."""
