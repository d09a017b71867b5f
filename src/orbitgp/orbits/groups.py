"""Finite groups that permute the coordinates of an input or flip their signs."""

import itertools
from abc import abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.orbits.base import FiniteOrbit

MAX_GROUP_SIZE = 100_000
MAX_GROUP_ENTRIES = 4_000_000
"""Elements × positions."""


class CoordinatePermutations(FiniteOrbit):
    """A group of P permutations of the coordinates of an input, given as a table of indices.

    Turning an image by 90°, shifting a series and swapping two inputs are all of this kind: one
    gather applies any of them, so a group only has to say what it does to the numbers 0 … D − 1.
    """

    @abstractmethod
    def permutations(self, event_shape: torch.Size) -> Int[Tensor, "P *event"]:
        """The coordinates, numbered and laid out as the input, after each element of the group."""

    def act(
        self, x: Float[Tensor, "N *event"], index: Int[Tensor, "N S"]
    ) -> Float[Tensor, "N S *event"]:
        """Permuted inputs."""
        table = self.permutations(x.shape[1:]).flatten(1).to(x.device)
        gather = table[index].flatten(1)
        return x.flatten(1).gather(1, gather).unflatten(1, (index.shape[1], *x.shape[1:]))


def _length(event_shape: torch.Size, dim: int) -> int:
    """The positions along one axis of an input."""
    if not -len(event_shape) <= dim < len(event_shape):
        raise InputError(f"inputs of shape {list(event_shape)} have no axis {dim}")
    return event_shape[dim]


def _numbered(event_shape: torch.Size) -> Int[Tensor, "*event"]:
    return torch.arange(event_shape.numel()).reshape(event_shape)


class PermutationGroup(CoordinatePermutations):
    """The group that some permutations generate, acting on one axis of the input.

    Parameters
    ----------
    *generators : sequence of int
        Where each position takes its value from: (1, 0, 2) exchanges the first two of three.
    dim : int, default=-1
        The axis of one input: −1 the last, 0 the first (the atoms of [A, 3]).

    Raises
    ------
    InputError
        If a generator is no permutation, or the group is too large to list.

    Examples
    --------
    >>> from orbitgp import PermutationGroup
    >>> PermutationGroup((1, 0, 2), (1, 2, 0)).describe()
    '6 permutations of 3 positions'
    """

    elements: Int[Tensor, "P L"]

    def __init__(self, *generators: Sequence[int], dim: int = -1) -> None:
        super().__init__()
        try:
            self.generators = tuple(tuple(int(i) for i in generator) for generator in generators)
        except (TypeError, ValueError):
            raise InputError(
                "a permutation is a sequence of whole numbers, and each one is an argument of its "
                f"own, as in PermutationGroup((1, 0, 2), (1, 2, 0)); got {generators!r:.80}"
            ) from None
        elements = torch.tensor(generate_group(self.generators))
        self.register_buffer("elements", elements, persistent=False)
        self.size = len(self.elements)
        self.dim = dim

    def permutations(self, event_shape: torch.Size) -> Int[Tensor, "P *event"]:
        """The numbered input, permuted along its axis."""
        length = self.elements.shape[1]
        if _length(event_shape, self.dim) != length:
            raise InputError(
                f"these permutations move {length} positions, but axis {self.dim} of an input of "
                f"shape {list(event_shape)} has {event_shape[self.dim]}"
            )
        numbered = _numbered(event_shape).movedim(self.dim, -1)
        permuted = numbered[..., self.elements.cpu()].movedim(-2, 0)
        return permuted.movedim(-1, self.dim if self.dim < 0 else self.dim + 1)

    def describe(self) -> str:
        """In words."""
        moved = (self.elements != self.elements[0]).any(0).nonzero().flatten().tolist()
        if len(moved) == 2:
            return f"swap of positions {moved[0]} and {moved[1]}"
        return f"{self.size} permutations of {self.elements.shape[1]} positions"


def coordinate_swap(first: int, second: int, num_coordinates: int) -> PermutationGroup:
    """Make the group of two that exchanges two coordinates of [N, D].

    Parameters
    ----------
    first, second : int
        The coordinates, counted from 0.
    num_coordinates : int
        D.

    Returns
    -------
    PermutationGroup
        The identity and the exchange.

    Raises
    ------
    InputError
        If the coordinates are the same, or not among 0 … D − 1.

    Examples
    --------
    >>> from orbitgp import coordinate_swap
    >>> coordinate_swap(0, 1, num_coordinates=3).describe()
    'swap of positions 0 and 1'
    """
    if first == second or not {first, second} <= set(range(num_coordinates)):
        raise InputError(
            f"a swap needs two different coordinates among 0 … {num_coordinates - 1}; "
            f"got {first} and {second}"
        )
    return PermutationGroup(_swapped(num_coordinates, first, second))


def _swapped(num_coordinates: int, first: int, second: int) -> list[int]:
    order = list(range(num_coordinates))
    order[first], order[second] = order[second], order[first]
    return order


def block_permutations(*blocks: Sequence[int], num_coordinates: int) -> PermutationGroup:
    """Make the group of all orders within each of some blocks of coordinates of [N, D].

    Parameters
    ----------
    *blocks : sequence of int
        Coordinates, counted from 0, that may change places with each other.
    num_coordinates : int
        D.

    Returns
    -------
    PermutationGroup
        Of ∏ (length of a block)! elements.

    Raises
    ------
    InputError
        If a coordinate is in two blocks, or not among 0 … D − 1.

    Examples
    --------
    >>> from orbitgp import block_permutations
    >>> block_permutations((0, 1, 2), (3, 4), num_coordinates=5).size
    12
    """
    flat = [place for block in blocks for place in block]
    if len(set(flat)) != len(flat) or not set(flat) <= set(range(num_coordinates)):
        raise InputError(
            f"blocks must be of different coordinates among 0 … {num_coordinates - 1}; got "
            f"{[list(block) for block in blocks]}"
        )
    swaps = [pair for block in blocks for pair in itertools.pairwise(block)]
    if not swaps:
        raise InputError("block permutations need a block of two or more coordinates")
    return PermutationGroup(*(_swapped(num_coordinates, *pair) for pair in swaps))


def generate_group(generators: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Every product of the generators, the identity first."""
    if not generators:
        raise InputError("a permutation group needs at least one generator, such as (1, 0)")
    length = len(generators[0])
    for generator in generators:
        if sorted(generator) != list(range(length)):
            raise InputError(
                f"{tuple(generator)} is not a permutation of 0 … {length - 1}; list every position "
                "once, and give all generators the same length"
            )
    identity = tuple(range(length))
    seen, frontier = {identity: None}, [identity]  # a dict keeps the order of discovery
    unique = sorted({tuple(generator) for generator in generators})
    limit = min(MAX_GROUP_SIZE, MAX_GROUP_ENTRIES // max(length, 1))
    while frontier:
        products: set[tuple[int, ...]] = set()
        for element, generator in itertools.product(frontier, unique):
            products.add(tuple(element[i] for i in generator))
            if len(products) > limit:
                break
        frontier = sorted(product for product in products if product not in seen)
        seen.update(dict.fromkeys(frontier))
        if len(seen) > limit:
            raise InputError(
                f"the generators make a group of {len(seen)} elements or more on {length} "
                "positions, too many to list; sample such a group with FunctionOrbit instead"
            )
    return list(seen)


class QuarterTurns(CoordinatePermutations):
    """The four rotations of a square image by multiples of 90°.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import QuarterTurns
    >>> QuarterTurns().enumerate(torch.arange(4.0).reshape(1, 2, 2)).points[0, 1]
    tensor([[1., 3.],
            [0., 2.]])
    """

    size = 4
    needs_images = True

    def permutations(self, event_shape: torch.Size) -> Int[Tensor, "P *event"]:
        """The numbered image, turned."""
        if len(event_shape) < 2 or event_shape[-1] != event_shape[-2]:
            raise InputError(
                f"quarter turns need square images [..., H, H]; got inputs of {list(event_shape)}"
            )
        numbered = _numbered(event_shape)
        return torch.stack([numbered.rot90(turns, (-2, -1)) for turns in range(4)])

    def describe(self) -> str:
        """In words."""
        return "quarter turns"


class Mirror(CoordinatePermutations):
    """An input and its mirror image along one axis.

    Parameters
    ----------
    dim : int, default=-1
        −1 exchanges left and right, −2 top and bottom.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import Mirror
    >>> Mirror().enumerate(torch.tensor([[1.0, 2.0, 3.0]])).points
    tensor([[[1., 2., 3.],
             [3., 2., 1.]]])
    """

    size = 2

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def permutations(self, event_shape: torch.Size) -> Int[Tensor, "P *event"]:
        """The numbered input and its mirror image."""
        _length(event_shape, self.dim)
        numbered = _numbered(event_shape)
        return torch.stack([numbered, numbered.flip(self.dim)])

    def describe(self) -> str:
        """In words."""
        return f"mirror along axis {self.dim}".replace("-", "−")


class CyclicShifts(CoordinatePermutations):
    """Cyclic shifts of an axis by multiples of a step.

    Parameters
    ----------
    length : int
        Positions of the axis.
    step : int, default=1
        Divides `length`.
    dim : int, default=-1
        The axis of one input.

    Raises
    ------
    InputError
        If the step does not divide the length.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import CyclicShifts
    >>> CyclicShifts(4, step=2).enumerate(torch.tensor([[1.0, 2.0, 3.0, 4.0]])).points
    tensor([[[1., 2., 3., 4.],
             [3., 4., 1., 2.]]])
    """

    def __init__(self, length: int, *, step: int = 1, dim: int = -1) -> None:
        super().__init__()
        if length < 1 or step < 1 or length % step:
            raise InputError(
                f"cyclic shifts by {step} of {length} positions do not close; "
                "choose a step that divides the length"
            )
        self.length, self.step, self.dim = length, step, dim
        self.size = length // step

    def permutations(self, event_shape: torch.Size) -> Int[Tensor, "P *event"]:
        """The numbered input, shifted."""
        if _length(event_shape, self.dim) != self.length:
            raise InputError(
                f"these shifts are for {self.length} positions, but axis {self.dim} of an input of "
                f"shape {list(event_shape)} has {event_shape[self.dim]}"
            )
        numbered = _numbered(event_shape)
        shifts = range(0, self.length, self.step)
        return torch.stack([numbered.roll(shift, self.dim) for shift in shifts])

    def describe(self) -> str:
        """In words."""
        return f"cyclic shifts by multiples of {self.step} of {self.length}"


class SignFlips(FiniteOrbit):
    """Independent changes of sign of some coordinates of [N, D].

    Parameters
    ----------
    *coordinates : int
        Up to 16 different coordinates; k of them make 2ᵏ points.

    Raises
    ------
    InputError
        If coordinates repeat, or there are none or too many.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import SignFlips
    >>> SignFlips(0).enumerate(torch.tensor([[1.0, 2.0]])).points
    tensor([[[ 1.,  2.],
             [-1.,  2.]]])
    """

    signs: Float[Tensor, "P k"]

    def __init__(self, *coordinates: int) -> None:
        super().__init__()
        if not coordinates or len(set(coordinates)) != len(coordinates) or len(coordinates) > 16:
            raise InputError(
                f"sign flips need 1 to 16 different coordinates; got {list(coordinates)}"
            )
        self.coordinates = coordinates
        self.size = 2 ** len(coordinates)
        bits = torch.arange(int(self.size))[:, None] >> torch.arange(len(coordinates)) & 1
        self.register_buffer(
            "signs", (1 - 2 * bits).to(torch.get_default_dtype()), persistent=False
        )

    def act(
        self, x: Float[Tensor, "N *event"], index: Int[Tensor, "N S"]
    ) -> Float[Tensor, "N S *event"]:
        """Inputs with flipped signs."""
        if x.ndim != 2 or not set(self.coordinates) <= set(range(x.shape[1])):
            raise InputError(
                f"sign flips of coordinates {list(self.coordinates)} need inputs [N, D] that have "
                f"them; got {list(x.shape)}"
            )
        table = torch.ones(int(self.size), x.shape[1], dtype=x.dtype, device=x.device)
        table.index_copy_(1, torch.tensor(self.coordinates, device=x.device), self.signs.to(x))
        return x.unsqueeze(1) * table[index]

    def describe(self) -> str:
        """In words."""
        return "sign of coordinate " + ", ".join(str(c) for c in self.coordinates)
