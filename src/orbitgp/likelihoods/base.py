"""What a likelihood must offer: a quadratic lower bound of its log, point by point."""

from abc import ABC, abstractmethod

from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitgp.values import QuadraticBound


class Likelihood(nn.Module, ABC):
    """log p(y | f), through log p(y | f) ≥ c + l·f − ½ λ·f².

    Only such bounds have expectations that orbit samples estimate without bias. Local parameters
    of a bound must not be computed from the samples whose moments they multiply.
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
