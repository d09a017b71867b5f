"""Errors raised on purpose: each names what was given, what was expected and what to do."""


class OrbitGPError(Exception):
    """Base class of the errors that orbitgp raises on purpose.

    Examples
    --------
    >>> import orbitgp
    >>> try:
    ...     orbitgp.Rotation(-180, 180)
    ... except orbitgp.OrbitGPError as error:
    ...     print(error)
    angles are in radians and at most π; got -180 … 180: for degrees, use math.radians
    """


class InputError(OrbitGPError, ValueError):
    """An argument cannot be used as it was given; a `ValueError`.

    Examples
    --------
    >>> import orbitgp
    >>> issubclass(orbitgp.InputError, ValueError)
    True
    """


class FileError(OrbitGPError, ValueError):
    """A file is missing, damaged, of another version, or was not written by orbitgp.

    Examples
    --------
    >>> import orbitgp
    >>> issubclass(orbitgp.FileError, orbitgp.OrbitGPError)
    True
    """


class NumericalError(OrbitGPError, ArithmeticError):
    """A matrix that must be positive definite is not.

    Examples
    --------
    >>> import orbitgp
    >>> issubclass(orbitgp.NumericalError, ArithmeticError)
    True
    """


def refuse_second_derivatives() -> None:
    """Called in a hand-written gradient, which autograd cannot differentiate once more."""
    import torch  # here, since errors are also those of commands that need no torch

    if torch.is_grad_enabled():
        raise OrbitGPError(
            "second derivatives (create_graph=True) do not go through orbitgp's own gradients; for "
            "them, use InvariantKernel with ScaleKernel(RBFKernel()) of gpytorch.kernels"
        )
