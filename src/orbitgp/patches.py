"""Features of images that are learned from their own patches, without labels."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from orbitgp.errors import InputError
from orbitgp.features import MAX_CELLS, gaussian_windows
from orbitgp.filters import rows_of

NUM_PATCHES = 20_000
"""Patches that tell how neighbouring pixels vary together."""

CONTRAST = 0.03
"""Of a patch, relative to the variance of all pixels, below which it counts less."""

RIDGE = 0.1
"""Of the mean variance, added to each axis before patches are whitened."""

ENTRIES = 2**18
"""Of what filters find in some images at a time, so that it stays near the processor."""

OVERLAP = 0.55
"""Standard deviation of a window, in cells."""

MAX_FILTERS, MAX_SIDE = 4096, 32


class PatchFeatures(nn.Module):
    """Features of images: which of their typical patches are found where.

    Filters are patches drawn from the images, made comparable in contrast and whitened:
    r = (w ⋆ x) / √(variance of the patch + c). What exceeds a threshold on either side,
    relu(r − α) and relu(−r − α), is averaged by Gaussian windows on a grid of cells, and all is
    scaled to length 1. These are matrix products and differentiable, so ranges can be learned
    through them. Images are [B, H, W] or [B, C, H, W]; `PatchFeatures.of` makes the map.

    Parameters
    ----------
    filters : Tensor of shape (F, C, k, k)
        Whitened patches, each with sum 0.
    contrast : float
        The variance c below which a patch counts less, in squared units of the images.
    cells : int, default=3
        Cells along each side.
    threshold : float, default=0.5
        The α, in standard deviations of what a filter finds.
    stride : int, default=1
        Pixels from one patch to the next.

    Raises
    ------
    InputError
        If a constant is out of range.

    See Also
    --------
    OrientedEnergy : Edges and their crossings, without any filters to learn.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import PatchFeatures
    >>> generator = torch.Generator().manual_seed(0)
    >>> images = torch.rand(20, 3, 16, 16, generator=generator)
    >>> features = PatchFeatures.of(images, num_filters=32, generator=generator)
    >>> features(images).shape
    torch.Size([20, 576])
    """

    filters: Float[Tensor, "F C k k"]

    def __init__(
        self,
        filters: Float[Tensor, "F C k k"],
        contrast: float,
        cells: int = 3,
        threshold: float = 0.5,
        stride: int = 1,
    ) -> None:
        super().__init__()
        shape = list(filters.shape)
        square = filters.ndim == 4 and shape[2] == shape[3] and 2 <= shape[3] <= MAX_SIDE
        if not square or not 1 <= shape[0] <= MAX_FILTERS:
            raise InputError(
                f"filters are 1 to {MAX_FILTERS} patches of 2 to {MAX_SIDE} pixels a side, "
                f"[F, C, k, k]; got {shape}"
            )
        if not (1 <= cells <= MAX_CELLS and 1 <= stride <= MAX_SIDE):
            raise InputError(
                f"patch features have 1 to {MAX_CELLS} cells along each side, and a stride of 1 to "
                f"{MAX_SIDE}; got {cells} and {stride}"
            )
        if not (0 <= threshold < math.inf and 0 < contrast < math.inf):
            raise InputError(
                "the contrast of patch features must be positive, their threshold at least 0, and "
                f"both finite; got {contrast} and {threshold}"
            )
        self.contrast, self.cells = contrast, cells
        self.threshold, self.stride = threshold, stride
        self.register_buffer("filters", filters)

    @staticmethod
    @torch.no_grad()
    def of(
        x: Float[Tensor, "N *event"],
        *,
        num_filters: int = 128,
        size: int = 5,
        cells: int = 3,
        threshold: float = 0.5,
        stride: int = 1,
        generator: torch.Generator,
    ) -> "PatchFeatures":
        """The map whose filters are patches of these images.

        Parameters
        ----------
        x : Tensor of shape (N, H, W) or (N, C, H, W)
            Images; no labels are needed.
        num_filters, size : int, default=128 and 5
            Filters, and pixels along each of their sides.
        cells, threshold, stride
            As in `PatchFeatures`.
        generator : torch.Generator
            Draws the patches.

        Returns
        -------
        PatchFeatures
            On the device of the images.
        """
        images = _as_images(x)
        if size > min(images.shape[-2:]):
            raise InputError(
                f"patches of {size} × {size} pixels do not fit into images {list(x.shape[1:])}"
            )
        contrast = CONTRAST * _variance(images)
        patches = _drawn(images, size, generator).double()
        patches = patches - patches.mean(1, keepdim=True)
        patches = patches * (patches.square().mean(1, keepdim=True) + contrast).rsqrt()
        spread, axes = torch.linalg.eigh(patches.mT @ patches / len(patches))
        ridge = (RIDGE * spread.mean()).clamp(min=torch.finfo(torch.float64).tiny)
        whitening = axes * (spread.clamp(min=0) + ridge).rsqrt() @ axes.mT
        chosen = patches[: max(1, num_filters)]
        filters = normalize(chosen @ whitening, dim=1) @ whitening
        filters = filters - filters.mean(1, keepdim=True)
        found = (patches @ filters.mT).square().mean(0).sqrt()
        filters = filters / torch.where(found > 0, found, 1.0)[:, None]
        kernel = filters.to(x).reshape(-1, images.shape[1], size, size)
        return PatchFeatures(kernel, contrast, cells, threshold, stride)

    @property
    def num_features(self) -> int:
        """D."""
        return 2 * len(self.filters) * self.cells**2

    def forward(self, x: Float[Tensor, "B *event"]) -> Float[Tensor, "B D"]:
        """What exceeds the threshold in each cell, scaled to length 1."""
        images = _as_images(x)
        expected, size = self.filters.shape[1], self.filters.shape[3]
        if images.shape[1] != expected or min(images.shape[2:]) < size:
            raise InputError(
                f"these patch features are of images with {expected} channels and at least "
                f"{size} × {size} pixels; got {list(x.shape[1:])}"
            )
        shape = [(length - size) // self.stride + 1 for length in images.shape[2:]]
        rows, columns = (gaussian_windows(length, self.cells, OVERLAP) for length in shape)
        windows = torch.kron(rows, columns).mT.to(images)
        weights = self.filters.flatten(1).mT.to(images)
        block = max(1, ENTRIES // (windows.shape[1] * len(self.filters)))
        return torch.cat([self._found(part, weights, windows) for part in rows_of(images, block)])

    def _found(
        self, images: Float[Tensor, "B C H W"], weights: Float[Tensor, "E F"], windows: Tensor
    ) -> Float[Tensor, "B D"]:
        """Windows [cells, places] of what filters find at each place."""
        patches = _patches(images, self.filters.shape[3], self.stride)
        mean = patches.mean(2, keepdim=True)
        variance = patches.square().mean(2, keepdim=True) - mean.square()
        found = patches @ weights * (variance.clamp(min=0) + self.contrast).rsqrt()
        beyond = (found - self.threshold).relu(), (-found - self.threshold).relu()
        pooled = torch.cat([windows @ side for side in beyond], 2)
        return normalize(pooled.flatten(1), dim=1)


def _patches(
    images: Float[Tensor, "B C H W"], size: int, stride: int
) -> Float[Tensor, "B places E"]:
    """All of them, flat: matrix products with them are faster than convolutions."""
    found = images.unfold(2, size, stride).unfold(3, size, stride)  # [B, C, h, w, k, k]
    return found.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def _variance(images: Float[Tensor, "N C H W"]) -> float:
    """Of all pixels; 1 where they differ by rounding alone."""
    variance = images.var(correction=0).item()
    rounding = 10 * torch.finfo(images.dtype).eps * images.abs().max().item()
    return variance if variance > rounding**2 else 1.0


def _as_images(x: Float[Tensor, "N *event"]) -> Float[Tensor, "N C H W"]:
    if x.ndim not in (3, 4):
        raise InputError(
            f"patch features are of images [B, H, W] or [B, C, H, W]; got {list(x.shape)}"
        )
    return x.unsqueeze(1) if x.ndim == 3 else x


def _drawn(
    images: Float[Tensor, "N C H W"], size: int, generator: torch.Generator
) -> Float[Tensor, "P K"]:
    """Patches at random places of random images, flat."""
    highest = torch.tensor([len(images), *(side - size + 1 for side in images.shape[2:])])
    places = (torch.rand(NUM_PATCHES, 3, generator=generator) * highest).long().unbind(1)
    image, top, left = (place.to(images.device) for place in places)
    offsets = torch.arange(size, device=images.device)
    rows, columns = top[:, None, None] + offsets[:, None], left[:, None, None] + offsets
    patches = images[image[:, None, None], :, rows, columns]  # [P, k, k, C]
    return patches.permute(0, 3, 1, 2).flatten(1)
