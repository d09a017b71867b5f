"""Learned orbits as transforms for the training loops of other libraries."""
