"""Anderson acceleration of fixed-point iterations.

A round takes local parameters ψ to better ones, r(ψ); the fixed point is where r(ψ) = ψ.
"""

import torch
from jaxtyping import Float
from torch import Tensor

MEMORY = 5
"""Earlier rounds that `Mixing` holds: two tensors for each."""

SMALLEST = 1e-10
"""Of the largest eigenvalue: smaller differences between rounds are taken as equal."""

GROWTH = 2.0
"""If a round moves so many times further than the last, earlier ones mislead."""


class Mixing:
    """Anderson (1965): where the moves of the last rounds cancel, if r is linear between them."""

    def __init__(self) -> None:
        self.ends: list[Tensor] = []
        self.moves: list[Tensor] = []

    def onward(self, local: Tensor, best: Tensor) -> Tensor:
        """Where to go on, after a round from `local` to `best`."""
        move = (best - local).flatten()
        if self.moves and move.norm() > GROWTH * self.moves[-1].norm():
            self.ends, self.moves = [], []
        self.ends = [*self.ends[-MEMORY:], best.flatten()]
        self.moves = [*self.moves[-MEMORY:], move]
        ends, moves = (torch.stack(each).diff(dim=0) for each in (self.ends, self.moves))
        return best - mixed(ends, moves, move).view_as(best)


def mixed(
    ends: Float[Tensor, "R D"], moves: Float[Tensor, "R D"], move: Float[Tensor, "D"]
) -> Float[Tensor, "D"]:
    """γ·ends for the γ with the smallest |move − γ·moves|; 0 if there are none."""
    inverse = torch.linalg.pinv(moves @ moves.mT, rtol=SMALLEST, hermitian=True)
    return (inverse @ (moves @ move)) @ ends
