"""Point sets that are turned, mirrored, moved and jittered.

Inputs are [N, A, F]: A points, whose first three columns are their position. Other columns, such as
a charge, go with their point. With `mask`, the number of one of these, a point is absent, and
stays where it is, if that column is 0.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from orbitgp.errors import InputError
from orbitgp.orbits.base import FiniteOrbit
from orbitgp.orbits.curves import normals
from orbitgp.orbits.ranged import Quantity, RangedOrbit
from orbitgp.orbits.ranges import Ends

Axis = Literal["x", "y", "z"]
AXES = ("x", "y", "z")

NEWTON_STEPS = 6


def check_points(x: Float[Tensor, "N *event"], mask: int | None) -> None:
    """Refuse inputs that are no points in space."""
    if x.ndim != 3 or x.shape[-1] < 3:
        raise InputError(
            f"points are [N, points, 3 or more columns], positions first; got {list(x.shape)}"
        )
    if mask is not None and not 3 <= mask < x.shape[-1]:
        raise InputError(
            f"mask={mask} must be the number of a column behind the three of the position; inputs "
            f"have {x.shape[-1]} columns"
        )


def _present(x: Float[Tensor, "N A F"], mask: int | None) -> Float[Tensor, "N 1 A 1"]:
    there = x[..., :1].new_ones(1).expand(*x.shape[:2], 1) if mask is None else x[..., mask, None]
    return (there != 0).to(x.dtype).unsqueeze(1)


def _with_positions(
    x: Float[Tensor, "N A F"], positions: Float[Tensor, "N S A 3"]
) -> Float[Tensor, "N S A F"]:
    rest = x[..., 3:].unsqueeze(1).expand(-1, positions.shape[1], -1, -1)
    return torch.cat([positions, rest], -1)


class PointRotation(RangedOrbit):
    """Point sets turned about an axis through the origin, or about any axis.

    About one axis, the angle is uniform in [low, high]. About any, rotations are those of the Haar
    measure, all equally likely, as far as their angle is at most `high`; π is all of them.

    Parameters
    ----------
    high : float, default=0.2
        Where the upper end of the range starts, in radians.
    low : float, optional
        Where the lower end starts; −high if not given. Of no use without an axis.
    axis : {"x", "y", "z"}, optional
        The axis; any if not given.
    **options : object
        Of `UniformRange`: learn_low, learn_high, symmetric and prior.

    Raises
    ------
    InputError
        If the axis is none of these, or angles are beyond π.

    See Also
    --------
    Translation : Shifts in space.
    PointMirror : Mirror images.

    Examples
    --------
    >>> from orbitgp import PointRotation
    >>> PointRotation(0.5, axis="z").describe()
    'rotation about z −29° … +29°'
    >>> PointRotation.full().describe()
    'any rotation in space'
    """

    def __init__(
        self,
        high: float = 0.2,
        low: float | None = None,
        *,
        axis: Axis | None = None,
        **options: Any,
    ) -> None:
        if axis is not None and axis not in AXES:
            raise InputError(f"axis must be x, y or z, or None for any; got {axis!r:.40}")
        if axis is None and low is not None:
            raise InputError("a rotation about any axis has no lower end; leave low out")
        low = -high if low is None else low
        if max(abs(low), abs(high)) > math.pi + 1e-6:
            raise InputError(
                f"angles are in radians and at most π; got {low:g} … {high:g}: for degrees, use "
                "math.radians"
            )
        name = "rotation in space" if axis is None else f"rotation about {axis}"
        every = "any rotation in space" if axis is None else f"any rotation about {axis}"
        if axis is None:
            options = {"symmetric": True, **options}
        turn = Quantity(name, "°", 180 / math.pi, math.pi, 0, every)
        super().__init__([turn], low, high, **options)
        self.axis = axis
        self.noise_size = 3 if axis is None else 1

    @staticmethod
    def full(axis: Axis | None = None) -> "PointRotation":
        """Make every rotation equally likely, for good."""
        fixed = {"learn_low": False, "learn_high": False}
        return PointRotation(math.pi, axis=axis, symmetric=True, **fixed)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that it was made with, besides its ranges."""
        return {"axis": self.axis}

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that are no points in space."""
        check_points(x, None)

    def transform(
        self, x: Float[Tensor, "N A F"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S A F"]:
        """Turned points; those at the origin stay there."""
        self.check(x)
        if self.axis is None:
            turns = _rotations(self.ranges.high[0], noise.to(self.ranges.high))
        else:
            turns = _about(AXES.index(self.axis), self.parameters_from(noise).squeeze(-1))
        turned = torch.einsum("nsij,naj->nsai", turns.to(x.dtype), x[..., :3])
        return _with_positions(x, turned)


def _about(axis: int, angle: Float[Tensor, "*B"]) -> Float[Tensor, "*B 3 3"]:
    """Rotation matrices by the right-hand rule."""
    direction = torch.zeros(*angle.shape, 3, dtype=angle.dtype, device=angle.device)
    direction[..., axis] = 1
    return _rotation_matrix(direction, angle)


def _rotation_matrix(
    direction: Float[Tensor, "*B 3"], angle: Float[Tensor, "*B"]
) -> Float[Tensor, "*B 3 3"]:
    """I + sin φ K + (1 − cos φ) K², with K v = direction × v (Rodrigues)."""
    x, y, z = direction.unbind(-1)
    nothing = torch.zeros_like(x)
    rows = [nothing, -z, y, z, nothing, -x, -y, x, nothing]
    cross = torch.stack(rows, -1).unflatten(-1, (3, 3))
    sin, cos = angle.sin()[..., None, None], angle.cos()[..., None, None]
    return torch.eye(3).to(cross) + sin * cross + (1 - cos) * (cross @ cross)


def _rotations(
    largest: Float[Tensor, ""], noise: Float[Tensor, "N S 3"]
) -> Float[Tensor, "N S 3 3"]:
    """Uniform among rotations by at most so much.

    Their axis is uniform on the sphere, and their angle has the density (1 − cos φ)/(h − sin h).
    """
    height, around = 2 * noise[..., 1] - 1, 2 * math.pi * noise[..., 2]
    radius = (1 - height.square()).clamp(min=0).sqrt()
    direction = torch.stack([radius * around.cos(), radius * around.sin(), height], -1)
    return _rotation_matrix(direction, _haar_angle(largest, noise[..., 0]))


def _haar_angle(largest: Float[Tensor, ""], share: Float[Tensor, "N S"]) -> Float[Tensor, "N S"]:
    """φ with φ − sin φ = u (h − sin h), by Newton's method; the last step has the gradient in h."""
    wide, part = largest.double().clamp(min=1e-30), share.double().clamp(min=1e-12)
    below = part * _beyond_sine(wide)
    angle = wide * part ** (1 / 3)
    for _ in range(NEWTON_STEPS):
        angle = angle.detach()
        slope = 2 * (0.5 * angle).sin().square()  # 1 − cos φ
        angle = angle - (_beyond_sine(angle) - below) / slope
    return angle.to(share)


def _beyond_sine(angle: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """φ − sin φ, by its series where the difference would be lost in rounding."""
    square = angle.square()
    series = angle * square / 6 * (1 - square / 20 * (1 - square / 42))
    return torch.where(angle < 0.1, series, angle - angle.sin())


class PointMirror(FiniteOrbit):
    """A point set and its mirror image.

    Parameters
    ----------
    axis : {"x", "y", "z"}, default="x"
        The coordinate that changes its sign.

    Raises
    ------
    InputError
        If the axis is none of these.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import PointMirror
    >>> PointMirror("y").enumerate(torch.tensor([[[1.0, 2.0, 3.0]]])).points[0, 1]
    tensor([[ 1., -2.,  3.]])
    """

    size = 2

    def __init__(self, axis: Axis = "x") -> None:
        super().__init__()
        if axis not in AXES:
            raise InputError(f"axis must be x, y or z; got {axis!r:.40}")
        self.axis = axis

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that are no points in space."""
        check_points(x, None)

    def act(self, x: Float[Tensor, "N A F"], index: Int[Tensor, "N S"]) -> Float[Tensor, "N S A F"]:
        """The points with these numbers."""
        self.check(x)
        place = AXES.index(self.axis)
        signs = torch.ones(2, x.shape[-1], dtype=x.dtype, device=x.device)
        signs[1, place] = -1
        return x.unsqueeze(1) * signs[index].unsqueeze(2)

    def describe(self) -> str:
        """In words."""
        return f"mirror image along {self.axis}"


class _Moves(RangedOrbit):
    """Points that are moved by lengths, which are given and shown in the unit of the positions.

    Estimators divide inputs by their largest value: that number is the `unit` of what moves here.
    """

    unit: Tensor

    def __init__(
        self, quantities: Sequence[Quantity], low: Ends, high: Ends, **options: Any
    ) -> None:
        super().__init__(quantities, low, high, **options)
        self.register_buffer("unit", torch.ones((), dtype=torch.float64))

    def measured_in(self, unit: float) -> None:
        """What inputs were divided by."""
        self.unit.fill_(unit)

    def moved(
        self,
        x: Float[Tensor, "N A F"],
        moves: Float[Tensor, "N S #A 3"],
        mask: int | None,
    ) -> Float[Tensor, "N S A F"]:
        """Positions moved so far, in their own unit; points that are absent stay where they are."""
        moves = moves.to(x) / self.unit.to(x) * _present(x, mask)
        return x.unsqueeze(1) + pad(moves, (0, x.shape[-1] - 3))


class Translation(_Moves):
    """Point sets moved by the same random amount, each coordinate with a range of its own.

    Parameters
    ----------
    low, high : float or sequence of float, default=∓0.05
        Where the ends of the ranges start, for x, y and z, in the unit of the positions: one number
        for all, or three.
    mask : int, optional
        A column that is 0 for points that are absent.
    **options : object
        Of `UniformRange`: learn_low, learn_high, symmetric and prior.

    See Also
    --------
    Jitter : Each point moved by itself.

    Examples
    --------
    >>> from orbitgp import Translation
    >>> Translation(-0.5, 0.5).describe()
    'x-translation −0.50 … +0.50, y-translation −0.50 … +0.50, z-translation −0.50 … +0.50'
    """

    def __init__(
        self, low: Ends = -0.05, high: Ends = 0.05, *, mask: int | None = None, **options: Any
    ) -> None:
        quantities = [Quantity(f"{axis}-translation") for axis in AXES]
        super().__init__(quantities, low, high, **options)
        self.mask = mask

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that it was made with, besides its ranges."""
        return {"mask": self.mask}

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that are no points in space."""
        check_points(x, self.mask)

    def transform(
        self, x: Float[Tensor, "N A F"], noise: Float[Tensor, "N S 3"]
    ) -> Float[Tensor, "N S A F"]:
        """Moved points."""
        self.check(x)
        return self.moved(x, self.parameters_from(noise).unsqueeze(2), self.mask)


class Jitter(_Moves):
    """Every point of a set moved by itself, by normal noise of a learnable standard deviation.

    Parameters
    ----------
    deviation : float, default=0.02
        Where it starts, in the unit of the positions.
    num_points : int
        A.
    mask : int, optional
        A column that is 0 for points that are absent.
    **options : object
        Of `UniformRange`: learn_low and learn_high, which must be alike, and prior.

    See Also
    --------
    Translation : All points moved together.

    Examples
    --------
    >>> from orbitgp import Jitter
    >>> Jitter(0.1, num_points=4).describe()
    'jitter −0.10 … +0.10'
    """

    def __init__(
        self, deviation: float = 0.02, *, num_points: int, mask: int | None = None, **options: Any
    ) -> None:
        if num_points < 1:
            raise InputError(f"num_points must be at least 1; got {num_points}")
        jitter = Quantity("jitter", normal=True)
        super().__init__([jitter], -deviation, deviation, symmetric=True, **options)
        self.num_jittered, self.mask, self.noise_size = num_points, mask, 3 * num_points

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that it was made with, besides its ranges."""
        return {"num_points": self.num_jittered, "mask": self.mask}

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that are not so many points in space."""
        check_points(x, self.mask)
        if x.shape[1] != self.num_jittered:
            raise InputError(
                f"this jitter is for {self.num_jittered} points; got {list(x.shape)}: make it with "
                f"num_points={x.shape[1]}"
            )

    def transform(
        self, x: Float[Tensor, "N A F"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S A F"]:
        """Jittered points."""
        self.check(x)
        moves = self.ranges.high.to(x) * normals(noise).to(x).unflatten(-1, (-1, 3))
        return self.moved(x, moves, self.mask)
