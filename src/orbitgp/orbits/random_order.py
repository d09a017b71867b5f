"""Point sets, and matrices of pairs of points, in random order."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.curves import normals


class RandomOrder(Orbit):
    """The rows of an input in random order, where all orders are too many to list.

    Row i of [A, F] has the key |x_i| + s ε_i with ε_i ~ N(0, 1), and rows are sorted by falling
    keys. With s = ∞ all orders are equally likely; with a smaller s, rows of similar norms change
    places, as in randomly sorted Coulomb matrices (Montavon et al. 2012). Rows of zeros, which
    stand for absent points, come last. s is fixed: sorting has no gradient.

    Parameters
    ----------
    length : int
        A.
    spread : float, default=inf
        s, in the unit of the norms; estimators divide inputs by their largest value.
    pairs : bool, default=False
        Whether inputs are matrices [A, A] of pairs, whose columns are sorted like the rows.

    Raises
    ------
    InputError
        If length or spread cannot be used.

    See Also
    --------
    PermutationGroup : Few permutations, all of which are listed.

    References
    ----------
    G. Montavon et al. (2012). Learning invariant representations of molecules for atomization
    energy prediction. NeurIPS.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import RandomOrder
    >>> x = torch.tensor([[[1.0], [2.0], [0.0]]])
    >>> RandomOrder(3, spread=0.0).sample(x, 1, generator=torch.Generator()).points.flatten()
    tensor([2., 1., 0.])
    """

    def __init__(self, length: int, *, spread: float = math.inf, pairs: bool = False) -> None:
        super().__init__()
        if length < 2 or not spread >= 0:
            raise InputError(
                f"a random order needs at least 2 rows and a spread from 0 on; got {length} and "
                f"{spread}"
            )
        self.length, self.spread, self.pairs = length, float(spread), pairs
        self.noise_size = length

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs without these rows."""
        shape = f"{self.length}, {self.length}" if self.pairs else f"{self.length}, columns"
        if x.ndim != 3 or x.shape[1] != self.length or (self.pairs and x.shape[2] != self.length):
            raise InputError(f"this order is of inputs [N, {shape}]; got {list(x.shape)}")

    def transform(
        self, x: Float[Tensor, "N A F"], noise: Float[Tensor, "N S A"]
    ) -> Float[Tensor, "N S A F"]:
        """Rows in the order of the noise."""
        self.check(x)
        norms, draws = x.norm(dim=-1).unsqueeze(1), normals(noise).to(x)
        keys = draws if math.isinf(self.spread) else norms + self.spread * draws
        keys = torch.where(norms > 0, keys, torch.full_like(keys, -math.inf))
        order = keys.argsort(dim=-1, descending=True, stable=True).unsqueeze(-1)
        shape = (*noise.shape[:2], *x.shape[1:])
        sorted_rows = x.unsqueeze(1).expand(shape).gather(2, order.expand(shape))
        return sorted_rows.gather(3, order.mT.expand(shape)) if self.pairs else sorted_rows

    def describe(self) -> str:
        """In words."""
        if math.isinf(self.spread):
            return f"any order of {self.length} rows"
        return f"order of {self.length} rows by norm ±{self.spread:.3g}"
