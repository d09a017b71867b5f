"""Differentiable maps φ between orbit and kernel, behind which the inducing points live."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from orbitgp.errors import InputError
from orbitgp.filters import energy, rows_of

BLOCK = 128
"""Images at a time, so that what stands between two operations stays near the processor."""

MAX_CELLS = 256
MAX_LAYERS = 2
MAX_ENTRIES = 8192
"""Of a matrix that pools rows and columns at once."""

NEGLIGIBLE = 1e-7
"""Weights that are 0 instead: numbers below the normal range are slow to multiply."""

EPSILON = 1e-6
"""Under the square root, whose slope would have no end at 0."""


class Standardize(nn.Module):
    """Flat features with mean 0 and standard deviation 1 on the data that it was made from.

    It stands behind the orbit, so a transformation still sees the inputs as they were measured.
    """

    mean: Float[Tensor, "D"]
    scale: Float[Tensor, "D"]

    def __init__(self, mean: Float[Tensor, "D"], scale: Float[Tensor, "D"]) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    @staticmethod
    def of(x: Float[Tensor, "N *event"]) -> "Standardize":
        """The map for these data; a feature that never varies is left unscaled."""
        flat = x.flatten(1)
        mean, spread = flat.mean(0), flat.std(0, correction=0)
        rounding = 10 * torch.finfo(x.dtype).eps * flat.abs().amax(0)
        return Standardize(mean, torch.where(spread > rounding, spread, torch.ones_like(spread)))

    def forward(self, x: Float[Tensor, "B *event"]) -> Float[Tensor, "B D"]:
        """(x − mean) / scale, feature by feature."""
        return (x.flatten(1) - self.mean) / self.scale


class Projection(nn.Module):
    """(φ − centre) · basis: features on the few axes that hold nearly all of their variance.

    Distances are hardly changed by what is left out, and cost as much less as there are fewer axes.
    """

    centre: Float[Tensor, "D"]
    basis: Float[Tensor, "D K"]

    def __init__(self, centre: Float[Tensor, "D"], basis: Float[Tensor, "D K"]) -> None:
        super().__init__()
        self.register_buffer("centre", centre)
        self.register_buffer("basis", basis)

    @staticmethod
    @torch.no_grad()
    def principal(
        features: Float[Tensor, "N D"], *, left_out: float, most: int
    ) -> "Projection | None":
        """The axes that hold all but this part of the variance, or as many as are allowed.

        None where that would leave nothing out. It depends on the inputs alone, not on an orbit or
        on a lengthscale, so that models of the same data can be compared.
        """
        centre = features.mean(0)
        centred = (features - centre).double()
        size, num_features = features.shape
        # X Xᵀ has the same eigenvalues as Xᵀ X, and where it is smaller takes less time
        wide = num_features > size
        gram = centred @ centred.mT if wide else centred.mT @ centred
        variances, axes = torch.linalg.eigh(gram)
        kept = variances.cumsum(0) > left_out * variances.sum()
        count = min(int(kept.sum()), most)
        if not 0 < count < num_features:
            return None
        axes = axes[:, len(axes) - count :]
        if wide:
            axes = normalize(centred.mT @ axes, dim=0)
        return Projection(centre, axes.to(features))

    def forward(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B K"]:
        """Coordinates on the axes."""
        return (features - self.centre) @ self.basis


class OrientedEnergy(nn.Module):
    """Features of images: where there are edges of which direction, and where these meet.

    A layer takes e_b = relu(∂x · (cos θ_b, sin θ_b))^p for `num_directions` directions all around,
    averages it by Gaussian windows on a grid of cells, takes the square root, and divides what is
    in a cell by √(its energy + `contrast`), so that faint strokes count nearly as much as bold
    ones. A second layer finds edges in each map of the first: ends, corners and crossings. In the
    end all is scaled to length 1. It is differentiable, so that ranges can be learned through it.
    Images are [B, H, W] or [B, C, H, W], whose channels are treated alike.

    Parameters
    ----------
    num_directions : int, default=8
        Directions all around.
    cells : tuple of int, default=(14, 5)
        Cells along each side, for one or two layers; (9,) takes about half of the time.
    sharpness : float, default=3.0
        The power p.
    overlap : float, default=0.55
        Standard deviation of a window, in cells.
    contrast : float, default=0.01
        Energy below which edges count less.

    Raises
    ------
    InputError
        If a constant is out of range.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import OrientedEnergy
    >>> OrientedEnergy()(torch.rand(2, 28, 28)).shape
    torch.Size([2, 1600])
    """

    kernel: Float[Tensor, "O 1 3 3"]

    def __init__(
        self,
        num_directions: int = 8,
        cells: tuple[int, ...] = (14, 5),
        sharpness: float = 3.0,
        overlap: float = 0.55,
        contrast: float = 0.01,
    ) -> None:
        super().__init__()
        cells = tuple(cells) if isinstance(cells, Sequence) else (cells,)
        sizes = (num_directions, *cells, sharpness)
        if num_directions < 2 or not all(1 <= size <= MAX_CELLS for size in sizes):
            raise InputError(
                f"oriented energy needs 2 to {MAX_CELLS} directions, cells and a sharpness of 1 to "
                f"{MAX_CELLS}; got {num_directions}, {cells} and {sharpness}"
            )
        if not 1 <= len(cells) <= MAX_LAYERS:
            raise InputError(f"oriented energy has 1 to {MAX_LAYERS} grids of cells; got {cells}")
        if not (0 < overlap < math.inf and 0 < contrast < math.inf):
            raise InputError(
                "the overlap and contrast of oriented energy must be positive and finite; got "
                f"{overlap} and {contrast}"
            )
        self.num_directions, self.cells, self.sharpness = num_directions, tuple(cells), sharpness
        self.overlap, self.contrast = overlap, contrast
        angles = torch.arange(num_directions) * (2 * math.pi / num_directions)
        sobel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]) / 8
        kernel = angles.cos()[:, None, None] * sobel + angles.sin()[:, None, None] * sobel.T
        self.register_buffer("kernel", kernel.unsqueeze(1), persistent=False)

    @property
    def num_features(self) -> int:
        """D, for one channel."""
        return self.num_directions ** len(self.cells) * self.cells[-1] ** 2

    def forward(self, x: Float[Tensor, "B *event"]) -> Float[Tensor, "B D"]:
        """√(pooled energy) relative to its surroundings, layer by layer, scaled to length 1."""
        if x.ndim not in (3, 4):
            raise InputError(
                f"oriented energy is of images [B, H, W] or [B, C, H, W]; got {list(x.shape)}"
            )
        images = x.reshape(-1, 1, *x.shape[-2:])
        shape, windows = images.shape[-2:], []
        for size in self.cells:
            windows.append(
                [gaussian_windows(length, size, self.overlap).to(images) for length in shape]
            )
            shape = (size, size)
        maps = [self._layers(block, windows) for block in rows_of(images, BLOCK)]
        return normalize(torch.cat(maps).reshape(x.shape[0], -1), dim=1)

    def _layers(
        self, maps: Float[Tensor, "B 1 H W"], windows: list[list[Tensor]]
    ) -> Float[Tensor, "B O K K"]:
        for pair in windows:
            maps = self._layer(maps, *pair)
        return maps

    def _layer(
        self, maps: Float[Tensor, "B I H W"], rows: Float[Tensor, "H K"], columns: Tensor
    ) -> Float[Tensor, "B O K K"]:
        """O directions in each of the I maps."""
        found = energy(maps.flatten(0, 1).unsqueeze(1), self.kernel.to(maps), self.sharpness)
        shape = (maps.shape[0], -1, rows.shape[1], columns.shape[1])
        pooled = _pooled(found, rows, columns).reshape(shape) + EPSILON
        return pooled.sqrt() * (pooled.sum(1, keepdim=True) + self.contrast).rsqrt()


def gaussian_windows(length: int, size: int, overlap: float) -> Float[Tensor, "L K"]:
    """Gaussian weights of pixels in each cell; a column sums to 1 but for what is cut off."""
    places = (torch.arange(length, dtype=torch.float64) + 0.5) * (size / length)
    centres = torch.arange(size, dtype=torch.float64) + 0.5
    weights = torch.exp(-0.5 * ((places[:, None] - centres) / overlap).square())
    weights = weights / weights.sum(0)
    return torch.where(weights < NEGLIGIBLE, 0, weights)


def _pooled(
    energy: Float[Tensor, "B O H W"], rows: Float[Tensor, "H K"], columns: Float[Tensor, "W L"]
) -> Float[Tensor, "B O *cells"]:
    """rowsᵀ · energy · columns; by one matrix where that is so small that two only cost calls."""
    if rows.numel() * columns.numel() <= MAX_ENTRIES:
        return energy.flatten(2) @ torch.kron(rows, columns)
    return rows.mT @ (energy @ columns)
