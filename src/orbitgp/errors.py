"""Errors raised on purpose: each names what was given, what was expected and what to do."""


class OrbitGPError(Exception):
    """Base of every error that orbitgp raises on purpose."""


class InputError(OrbitGPError, ValueError):
    """An argument cannot be used as it was given."""


class NumericalError(OrbitGPError, ArithmeticError):
    """A matrix that must be positive definite is not."""
