"""Errors raised on purpose: each names what was given, what was expected and what to do."""


class OrbitGPError(Exception):
    """Base of every error that orbitgp raises on purpose."""


class InputError(OrbitGPError, ValueError):
    """An argument cannot be used as it was given."""


class FileError(OrbitGPError, ValueError):
    """A file is damaged, hostile, of another version, or not one of ours."""


class NumericalError(OrbitGPError, ArithmeticError):
    """A matrix that must be positive definite is not."""


def refuse_second_derivatives() -> None:
    """Called in a hand-written gradient, which autograd cannot differentiate once more."""
    import torch  # here, since errors are also those of commands that need no torch

    if torch.is_grad_enabled():
        raise OrbitGPError(
            "second derivatives (create_graph=True) do not go through orbitgp's own gradients; for "
            "them, use InvariantKernel with ScaleKernel(RBFKernel()) of gpytorch.kernels"
        )
