"""Local deformations of images: smooth random fields that move, turn, scale and thicken.

The fields of infinite MNIST (Loosli, Canu and Bottou 2007) and of Simard et al. (2000), with
everything about them learnable. A field is white noise smoothed by a Gaussian of width w; in
cosines φ_k of frequency ω_k, which that smoothing multiplies one by one,

    f(p) = Σ_k c_k ε_k φ_k(p),   c_k ∝ exp(−½ w² |ω_k|²),   ε_k ~ N(0, 1),   mean_p Var f(p) = 1.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import grid_sample, softplus

from orbitgp.errors import InputError
from orbitgp.filters import filtered, inverse_softplus, rows_of
from orbitgp.orbits.base import UNIT, Orbit
from orbitgp.orbits.ranged import Quantity, symbol
from orbitgp.orbits.ranges import Ends, Flags, Range, UniformRange

FIELDS = (
    Quantity("x-displacement", "% of width", 50.0, normal=True),
    Quantity("y-displacement", "% of width", 50.0, normal=True),
    Quantity("local rotation", "°", math.degrees(1.0), normal=True),
    Quantity("local scaling", "%", 100.0, normal=True),
    Quantity("thickness", "% of width", 50.0, normal=True),
)
NUM_FIELDS = len(FIELDS)
BLOCK = 128
"""Samples at a time, so that what stands between two operations stays near the processor."""

MAX_FREQUENCIES = 64
SMOOTHING = 1e-3
"""Of |∇x| where the gradient is 0, in units of the image."""


class LocalDeformation(Orbit):
    """Images deformed by smooth random fields, and made thicker or thinner.

    x_a(p) = x(p + d(p)) + t(p) |∇x|, with five independent fields of one smoothness: displacement
    along x and along y, local rotation (d = θ(p) J p), local scaling (d = s(p) p), and thickness.
    Images are [N, H, W] or [N, C, H, W].

    Parameters
    ----------
    amplitude : float or sequence of five float, default=0.02
        Standard deviation of each field, in half-widths (radians for the rotation).
    width : float, default=0.4
        Standard deviation of the Gaussian that smooths the fields, in half-widths.
    learn_amplitude : bool or sequence of bool, default=True
        Which amplitudes are learned.
    learn_width : bool, default=True
        Whether the smoothness is learned.
    num_frequencies : int, default=5
        Cosines along each axis that make a field.
    tangent : bool, default=False
        Move pixels to first order, x + d·∇x, instead of by a warp: cheaper, and right for
        displacements below a pixel.
    prior : torch.distributions.Distribution, optional
        Distribution of the amplitudes that are learned.

    Raises
    ------
    InputError
        If width or number of frequencies cannot be used.

    References
    ----------
    G. Loosli, S. Canu and L. Bottou (2007). Training invariant support vector machines using
    selective sampling. P. Simard et al. (2000). Transformation invariance in pattern recognition.

    Examples
    --------
    >>> from orbitgp import LocalDeformation
    >>> scaling = LocalDeformation(0.02).learned_ranges()[3]
    >>> scaling.title, round(scaling.low, 3), round(scaling.high, 3)
    ('local scaling (%)', -2.0, 2.0)
    """

    needs_images = True
    names = tuple(quantity.name for quantity in FIELDS)

    def __init__(
        self,
        amplitude: Ends = 0.02,
        width: float = 0.4,
        *,
        learn_amplitude: Flags = True,
        learn_width: bool = True,
        num_frequencies: int = 5,
        tangent: bool = False,
        prior: Distribution | None = None,
    ) -> None:
        super().__init__()
        if not 0 < width < math.inf or not 1 <= num_frequencies <= MAX_FREQUENCIES:
            raise InputError(
                f"a deformation needs a width above 0 and 1 to {MAX_FREQUENCIES} frequencies; got "
                f"{width} and {num_frequencies}"
            )
        high = torch.as_tensor(amplitude, dtype=torch.get_default_dtype()).expand(NUM_FIELDS)
        flags = {"learn_low": learn_amplitude, "learn_high": learn_amplitude}
        self.ranges = UniformRange(
            (-high).tolist(), high.tolist(), symmetric=True, prior=prior, **flags
        )
        raw = inverse_softplus(torch.tensor(width, dtype=torch.get_default_dtype()))
        self.raw_width = nn.Parameter(raw, requires_grad=learn_width)
        self.num_frequencies, self.tangent = num_frequencies, tangent
        self.noise_size = NUM_FIELDS * num_frequencies**2

    @property
    def amplitude(self) -> Float[Tensor, "5"]:
        """Standard deviations of the fields."""
        return self.ranges.widths[0]

    @property
    def width(self) -> Float[Tensor, ""]:
        """w > 0, in half-widths."""
        return softplus(self.raw_width)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """Deformed images."""
        _check_images(x)
        size = max(1, BLOCK // noise.shape[1])
        blocks = zip(x.split(size), noise.split(size), strict=True)
        return torch.cat([self._deformed(part, *self._moves(x, own)) for part, own in blocks])

    def alike(
        self, noise: Float[Tensor, "1 S K"], like: Float[Tensor, "N *event"]
    ) -> Callable[[Float[Tensor, "N *event"]], Float[Tensor, "N S *event"]]:
        """The same fields for all images."""
        _check_images(like)
        moves, size = self._moves(like, noise), max(1, BLOCK // noise.shape[1])
        return lambda x: torch.cat([self._deformed(part, *moves) for part in rows_of(x, size)])

    def each(
        self, noise: Float[Tensor, "1 S K"], like: Float[Tensor, "N *event"]
    ) -> Callable[[Float[Tensor, "N S *event"]], Float[Tensor, "N S *event"]]:
        """Field s for sample s of every image."""
        _check_images(like)
        moves, size = self._moves(like, noise), max(1, BLOCK // noise.shape[1])

        def deformed(points: Float[Tensor, "N S *event"]) -> Float[Tensor, "N S *event"]:
            shape = points.shape[:2]
            own = (part.expand(*shape, *part.shape[2:]).flatten(0, 1) for part in moves)
            moved = self._deformed(points.flatten(0, 1), *(part.unsqueeze(1) for part in own))
            return moved.squeeze(1).unflatten(0, shape)

        return lambda points: torch.cat([deformed(part) for part in rows_of(points, size)])

    def _deformed(
        self,
        x: Float[Tensor, "N *event"],
        displacement: Float[Tensor, "R S H W 2"],
        thickness: Float[Tensor, "R S H W"],
    ) -> Float[Tensor, "N S *event"]:
        height, width = x.shape[-2:]
        images = x.unsqueeze(1) if x.ndim == 3 else x
        move = _first_order if self.tangent else _warped
        moved = move(images, displacement.expand(x.shape[0], -1, -1, -1, -1))
        slope = _gradient(moved.flatten(0, 1)) * x.new_tensor([1, width / height])[:, None, None]
        steepness = slope.square().sum(2).add(SMOOTHING**2).sqrt()
        steepness = (steepness - SMOOTHING).unflatten(0, moved.shape[:2])
        thick = moved + thickness.unsqueeze(2) * steepness
        return thick.reshape(*thick.shape[:2], *x.shape[1:])

    def _moves(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "R S K"]
    ) -> tuple[Float[Tensor, "R S H W 2"], Float[Tensor, "R S H W"]]:
        """Displacement and thickness at every pixel."""
        fields = self._fields(x, noise)
        return _displacement(fields), fields[:, :, 4]

    def _fields(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "R S K"]
    ) -> Float[Tensor, "R S 5 H W"]:
        """The five fields at every pixel, each with its amplitude."""
        height, width = x.shape[-2:]
        frequencies, basis = _cosines(self.num_frequencies, height, width)
        frequencies, basis = frequencies.to(self.raw_width), basis.to(self.raw_width)
        weights = torch.exp(-0.5 * self.width**2 * frequencies)
        weights = weights / (weights.square() @ basis.square().mean(1)).sqrt()
        # low frequencies of all fields come first, where evenly spread noise is most even
        # in float64, where the middle of the last step of noise is not yet 1
        normal = torch.special.ndtri(noise.double() + 0.5 / UNIT).to(self.raw_width)
        normal = normal.unflatten(-1, (-1, NUM_FIELDS)).mT
        coefficients = normal * (self.amplitude.unsqueeze(-1) * weights)
        return (coefficients @ basis).unflatten(-1, (height, width)).to(x.dtype)

    def describe(self) -> str:
        """In words."""
        *fields, smooth = self.learned_ranges()
        words = [f"{own.name} ±{own.high:.1f}{symbol(own.unit)}{own.remark}" for own in fields]
        return f"{', '.join(words)}, smooth over {smooth.high:.0f}%"

    def learned_ranges(self) -> tuple[Range, ...]:
        """Standard deviations to either side, in percent of the width and degrees; smoothness."""
        ends = self.amplitude.tolist(), self.ranges.identified.tolist()
        fields = [
            own.range(-end, end, known) for own, end, known in zip(FIELDS, *ends, strict=True)
        ]
        smooth = 50 * self.width.item()
        return *fields, Range("smoothness", "% of width", 0, smooth, smooth)


def _check_images(x: Tensor) -> None:
    if x.ndim not in (3, 4):
        raise InputError(
            f"deformations act on images [N, H, W] or [N, C, H, W]; got {list(x.shape)}"
        )


def _cosines(
    num_frequencies: int, height: int, width: int
) -> tuple[Float[Tensor, "K"], Float[Tensor, "K HW"]]:
    """|ω_k|² and φ_k ∝ cos(ω_i (y + 1)) cos(ω_j (x + 1)), ω_i = πi/2, lowest first, of one norm."""
    order = torch.arange(num_frequencies, dtype=torch.float64) * math.pi / 2
    rows, columns = (
        torch.cos(order[:, None] * ((torch.arange(n, dtype=torch.float64) * 2 + 1) / n))
        for n in (height, width)
    )
    rows[1:], columns[1:] = math.sqrt(2) * rows[1:], math.sqrt(2) * columns[1:]
    squares = (order[:, None].square() + order.square()).flatten()
    basis = torch.einsum("ih,jw->ijhw", rows, columns).flatten(2).flatten(0, 1)
    place = squares.argsort(stable=True)
    return squares[place], basis[place]


def _displacement(fields: Float[Tensor, "N S 5 H W"]) -> Float[Tensor, "N S H W 2"]:
    """(d_x, d_y) in half-widths and half-heights."""
    height, width = fields.shape[-2:]
    y, x = (
        ((torch.arange(n, device=fields.device) * 2 + 1) / n - 1).to(fields)
        for n in (height, width)
    )
    along_x, along_y, turn, scale, _ = fields.unbind(2)
    aspect = height / width
    d_x = along_x - aspect * turn * y[:, None] + scale * x
    d_y = along_y / aspect + turn * x / aspect + scale * y[:, None]
    return torch.stack([d_x, d_y], -1)


def _warped(
    images: Float[Tensor, "N C H W"], displacement: Float[Tensor, "N S H W 2"]
) -> Float[Tensor, "N S C H W"]:
    """x(p + d(p)), bilinear, 0 outside."""
    num_samples, height, width = displacement.shape[1:4]
    axes = [
        ((torch.arange(n, device=images.device) * 2 + 1) / n - 1).to(images)
        for n in (height, width)
    ]
    y, x = torch.meshgrid(*axes, indexing="ij")
    tall = (displacement + torch.stack([x, y], -1)).flatten(1, 2)
    moved = grid_sample(images, tall, mode="bilinear", padding_mode="zeros", align_corners=False)
    return moved.unflatten(2, (num_samples, height)).transpose(1, 2)


def _first_order(
    images: Float[Tensor, "N C H W"], displacement: Float[Tensor, "N S H W 2"]
) -> Float[Tensor, "N S C H W"]:
    """x + d·∇x."""
    slope = _gradient(images).unsqueeze(1)
    d_x, d_y = displacement.unsqueeze(2).unbind(-1)
    return images.unsqueeze(1) + d_x * slope[..., 0, :, :] + d_y * slope[..., 1, :, :]


def _gradient(images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C 2 H W"]:
    """∂x/∂p in half-widths and half-heights, by central differences, 0 outside."""
    height, width = images.shape[-2:]
    kernel = images.new_zeros(2, 1, 3, 3)
    kernel[0, 0, 1, 0], kernel[0, 0, 1, 2] = -width / 4, width / 4
    kernel[1, 0, 0, 1], kernel[1, 0, 2, 1] = -height / 4, height / 4
    return filtered(images.flatten(0, 1).unsqueeze(1), kernel).unflatten(0, images.shape[:2])
