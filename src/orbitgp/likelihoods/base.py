"""What a likelihood must offer: a quadratic lower bound of its log, point by point."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.values import QuadraticBound

MAX_ENTRIES = 2**22
"""Numbers held at once while class probabilities are computed."""


class Likelihood(nn.Module, ABC):
    """What a likelihood offers: a quadratic lower bound of log p(y | f) at each datum.

    log p(y | f) ≥ c + l·f − ½ λ·f². Only such bounds have expectations that orbit samples estimate
    without bias. Local parameters of a bound must not be computed from the samples whose moments
    they multiply.

    See Also
    --------
    Gaussian, OneHotGaussian, PolyaGamma, Softmax : The likelihoods there are.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import Gaussian
    >>> bound = Gaussian(noise=0.5).quadratic_bound(torch.zeros(1, 2), torch.tensor([3.0]))
    >>> round(bound.linear.item(), 6), round(bound.precision.item(), 6)
    (6.0, 2.0)
    """

    @property
    @abstractmethod
    def num_precisions(self) -> int:
        """R: 1 if all outputs share their precisions, or one for each output."""

    @abstractmethod
    def quadratic_bound(
        self, x: Float[Tensor, "N *event"], y: Shaped[Tensor, "N *targets"]
    ) -> QuadraticBound:
        """The bound at each of N labelled inputs."""


def check_num_classes(num_classes: int) -> None:
    """One class leaves nothing to predict."""
    if num_classes < 2:
        raise InputError(f"classes are at least 2; got {num_classes}")


def check_labels(labels: Shaped[Tensor, "N *targets"], num_classes: int) -> Int[Tensor, "N"]:
    """Whole numbers below C, as int64."""
    if labels.ndim != 1 or labels.is_floating_point():
        raise InputError(
            f"class labels must be integers [N]; got {labels.dtype} {list(labels.shape)}"
        )
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < num_classes:
        raise InputError(
            f"class labels must lie in 0 … {num_classes - 1}; got "
            f"{int(labels.min())} … {int(labels.max())}"
        )
    return labels.long()


def log_of_own(probabilities: Float[Tensor, "N C"], labels: Int[Tensor, "N"]) -> Float[Tensor, "N"]:
    """log p of each label, never below that of the smallest number."""
    own = probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)
    return own.clamp(min=torch.finfo(own.dtype).tiny).log()
