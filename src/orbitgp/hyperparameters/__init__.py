"""Ranges, lengthscale, kernel variance and noise, by the evidence."""
