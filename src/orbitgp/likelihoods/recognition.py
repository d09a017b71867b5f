"""A recognition network: local parameters from input and label (vdW 2018, section 4.5)."""

import math

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import one_hot


class Recognition(nn.Module):
    """One hidden layer from the flat input and the one-hot label to K local parameters.

    It is trained with the bound, whatever it says: a poor network makes the bound looser, never
    wrong, since it sees no orbit samples.
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
        codes = one_hot(labels, self.num_classes).to(self.hidden)
        inputs = torch.cat([x.flatten(1).to(self.hidden), codes], 1)
        hidden = torch.tanh(inputs @ self.hidden.mT + self.bias)
        return hidden @ self.out.mT + self.label[labels]
