"""Base kernels by name."""

from orbitgp.errors import InputError
from orbitgp.kernels import RBF, Kernel, MaternKernel

ORDERS = {"matern-1/2": 0.5, "matern-3/2": 1.5, "matern-5/2": 2.5}
ARD = "-ard"
NAMES = tuple(name + end for end in ("", ARD) for name in ("rbf", *ORDERS))


def named_kernel(name: str, num_features: int) -> Kernel:
    """An RBF or Matérn kernel; with "-ard", a lengthscale for each feature."""
    if name not in NAMES:
        raise InputError(f"no kernel is called {name!r}; choose among {', '.join(NAMES)}")
    axes, base = num_features if name.endswith(ARD) else None, name.removesuffix(ARD)
    return (
        MaternKernel(ORDERS[base], ard_num_dims=axes) if base in ORDERS else RBF(ard_num_dims=axes)
    )
