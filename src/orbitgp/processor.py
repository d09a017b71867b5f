"""How fast this machine multiplies: what turns a time budget into a size."""

FLOPS = 70e9
"""Operations a second of one thread in products of float32 matrices."""

FLOAT64_FLOPS = 50e9
"""The same in float64, or as much as a factorisation makes of it."""

ENTRIES = 0.5e9
"""Exponentials, with the passes over memory around them, a second of one thread."""
