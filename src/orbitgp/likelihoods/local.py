"""What likelihoods share whose bound touches log p(y | f) where local parameters say."""

from abc import abstractmethod
from dataclasses import replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.likelihoods.base import Likelihood, check_labels, check_num_classes
from orbitgp.values import Moments, Prediction, QuadraticBound


class LocalLikelihood(Likelihood):
    """Classes 0 … C − 1, bounded below at each datum for any value of its K local parameters.

    These must not depend on the orbit samples whose moments the bound multiplies, or the estimate
    would be biased. So they come from other draws and travel with the labels (`with_local`);
    or a recognition network gives them from input and label (vdW 2018, section 4.5); or they are 0.
    Class probabilities are those of `factor` · f, with `spread` times its variance; both are 1
    unless they are calibrated.
    """

    factor: Float[Tensor, ""]
    spread: Float[Tensor, ""]

    def __init__(
        self,
        num_classes: int,
        *,
        num_outputs: int,
        num_local: int,
        recognition: nn.Module | None = None,
    ) -> None:
        super().__init__()
        check_num_classes(num_classes)
        self.num_classes, self.num_outputs, self.num_local = num_classes, num_outputs, num_local
        self.recognition = recognition
        self.register_buffer("factor", torch.ones((), dtype=torch.float64))
        self.register_buffer("spread", torch.ones((), dtype=torch.float64))

    @property
    def has_constant_precision(self) -> bool:
        """Whether λ is the same for every datum, whatever its local parameters are."""
        return False

    @abstractmethod
    def bound_at(self, labels: Int[Tensor, "N"], local: Float[Tensor, "N K"]) -> QuadraticBound:
        """The bound with these local parameters."""

    @abstractmethod
    def best_local(self, moments: Moments) -> Float[Tensor, "N K"]:
        """The local parameters whose expected bound is highest under these moments of q(f)."""

    @abstractmethod
    def log_probabilities(self, f: Float[Tensor, "*B C1"]) -> Float[Tensor, "*B C"]:
        """log p(y | f) for each class y."""

    @abstractmethod
    def mean_probabilities(self, prediction: Prediction) -> Float[Tensor, "N C"]:
        """E[p(y | f)] for each class y."""

    def class_probabilities(self, prediction: Prediction) -> Float[Tensor, "N C"]:
        """The same for `factor` · f, with `spread` times its variance."""
        variance = self.factor**2 * self.spread * prediction.variance
        scaled = replace(prediction, mean=self.factor * prediction.mean, variance=variance)
        return self.mean_probabilities(scaled)

    def flattest_bound(self, labels: Shaped[Tensor, "N *targets"]) -> QuadraticBound:
        """The bound with local parameters 0, which touches at f = 0."""
        labels = self.labels_of(labels)
        return self.bound_at(labels, self.no_local(labels))

    def no_local(self, labels: Int[Tensor, "N"]) -> Float[Tensor, "N K"]:
        """Local parameters 0."""
        size = (len(labels), self.num_local)
        return torch.zeros(size, dtype=torch.float64, device=labels.device)

    def quadratic_bound(
        self, x: Float[Tensor, "N *event"], y: Shaped[Tensor, "N *targets"]
    ) -> QuadraticBound:
        """The bound for labels [N], or for what `with_local` made of them."""
        local = self.local_of(y)
        if local is not None:
            if y.shape[1] != 1 + self.num_local:
                raise InputError(
                    f"labels with local parameters have {1 + self.num_local} columns here; got "
                    f"{y.shape[1]}: make them with `with_local`"
                )
            return self.bound_at(self.labels_of(y), local)
        labels = self.check_labels(y)
        if self.recognition is not None:
            return self.bound_at(labels, self.recognition(x, labels).double())
        return self.flattest_bound(labels)

    def with_local(
        self, labels: Shaped[Tensor, "N *targets"], local: Float[Tensor, "N K"]
    ) -> Float[Tensor, "N K1"]:
        """Targets that hold each label and its local parameters, which pass through any loader."""
        return torch.cat([self.check_labels(labels).double().unsqueeze(1), local.double()], 1)

    def local_of(self, y: Shaped[Tensor, "N *targets"]) -> Float[Tensor, "N L"] | None:
        """The local parameters that `with_local` put there, if it did."""
        return y[:, 1:] if y.ndim == 2 and y.is_floating_point() else None

    def labels_of(self, y: Shaped[Tensor, "N *targets"]) -> Int[Tensor, "N"]:
        """The labels alone."""
        return self.check_labels(y[:, 0].long() if y.ndim == 2 else y)

    def check_labels(self, labels: Shaped[Tensor, "N *targets"]) -> Int[Tensor, "N"]:
        """Whole numbers below C, as int64."""
        return check_labels(labels, self.num_classes)
