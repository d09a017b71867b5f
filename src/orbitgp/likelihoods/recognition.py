"""A recognition network: local parameters from input and label (vdW 2018, section 4.5)."""

import math

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import one_hot


class Recognition(nn.Module):
    """Network from input and label to the local parameters of a bound.

    One hidden layer on the flat input and the one-hot label. It is trained with the bound, and a
    poor network makes the bound looser, never wrong, since it sees no orbit samples.

    Parameters
    ----------
    num_inputs : int
        Values of one input.
    num_classes : int
        Classes.
    num_local : int
        K, the local parameters of a datum.
    generator : torch.Generator
        Source of the first weights.
    num_hidden : int, default=64
        Hidden units.
    start : float, default=1.0
        Value of the parameters before training.

    References
    ----------
    van der Wilk et al. (2018), section 4.5.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import Recognition
    >>> network = Recognition(4, 3, 2, generator=torch.Generator().manual_seed(0))
    >>> network(torch.rand(5, 4), torch.tensor([0, 1, 2, 0, 1])).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        num_inputs: int,
        num_classes: int,
        num_local: int,
        *,
        generator: torch.Generator,
        num_hidden: int = 64,
        start: float = 1.0,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        size = num_inputs + num_classes
        weights = torch.randn(num_hidden, size, generator=generator, device=generator.device)
        self.hidden = nn.Parameter(weights / math.sqrt(size))
        self.bias = nn.Parameter(torch.zeros(num_hidden))
        self.out = nn.Parameter(torch.zeros(num_local, num_hidden))
        self.label = nn.Parameter(torch.full((num_classes, num_local), start))

    def forward(
        self, x: Shaped[Tensor, "N *event"], labels: Int[Tensor, "N"]
    ) -> Float[Tensor, "N K"]:
        """label bias + W₂ tanh(W₁ [x, e_y] + b)."""
        targets = one_hot(labels, self.num_classes).to(self.hidden)
        inputs = torch.cat([x.flatten(1).to(self.hidden), targets], 1)
        hidden = torch.tanh(inputs @ self.hidden.mT + self.bias)
        return hidden @ self.out.mT + self.label[labels]
