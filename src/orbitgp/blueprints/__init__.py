"""A model as plain values, JSON for its structure and tensors for its numbers, and back.

Only parts of our own are rebuilt from a file, by the closed lists here. A part with a user's code
in it (an orbit from a function, a feature map, another kernel) is marked as "given": its numbers
are in the file, and whoever loads the file brings the part.
"""
