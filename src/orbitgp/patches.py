"""Features of images that are learned from their own patches, without labels."""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize, softshrink

from orbitgp.errors import InputError
from orbitgp.features import MAX_CELLS, gaussian_windows
from orbitgp.filters import rows_of

NUM_PATCHES = 20_000
"""Patches from which the covariance of neighbouring pixels is estimated."""

CONTRAST = 0.03
"""Of a patch, relative to the variance of all pixels, below which it counts less."""

RIDGE = 0.1
"""Of the mean variance, added to each axis before patches are whitened."""

ENTRIES = 2**18
"""Of what filters find in some images at a time, so that it stays near the processor."""

OVERLAP = 0.55
"""Standard deviation of a window, in cells."""

MAX_FILTERS, MAX_SIDE = 4096, 32


class _FoundAgain(torch.autograd.Function):
    """A function of images that is computed again for a gradient: only the images are kept.

    Patches and what filters find in them have a thousand times as many entries as an image.
    """

    @staticmethod
    def forward(ctx: Any, images: Tensor, found: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.save_for_backward(images)
        ctx.found = found
        return found(images)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # pyright: ignore
        (images,) = ctx.saved_tensors
        twice = torch.is_grad_enabled()
        with torch.enable_grad():
            images = images if twice else images.detach().requires_grad_()
            found = ctx.found(images)
        return torch.autograd.grad(found, images, grad, create_graph=twice)[0], None


class PatchFeatures(nn.Module):
    """Features of images or series: which of their typical patches are found where.

    Filters are patches drawn from the inputs, made comparable in contrast and whitened:
    r = (w ⋆ x) / √(variance of the patch + c). What exceeds a threshold on either side,
    relu(r − α) and relu(−r − α), is averaged by Gaussian windows on a grid of cells, and all is
    scaled to length 1. These are matrix products and differentiable, so ranges can be learned
    through them. `PatchFeatures.of` makes the map from data.

    Parameters
    ----------
    filters : Tensor of shape (F, C, k, k), or (F, C, 1, k) for series
        Whitened patches, each with sum 0.
    contrast : float
        The variance c below which a patch counts less, in squared units of the inputs.
    cells : int, default=3
        Cells along each side.
    threshold : float, default=0.5
        The α, in standard deviations of what a filter finds.
    stride : int, default=1
        Pixels or samples from one patch to the next.
    dilation : int, default=1
        Pixels or samples from one entry of a patch to the next.
    series : bool, default=False
        Whether inputs are series [B, T] or [B, C, T] rather than images [B, H, W] or
        [B, C, H, W].

    Raises
    ------
    InputError
        If a constant is out of range.

    See Also
    --------
    OrientedEnergy : Edges and their crossings in images, without any filters to learn.

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

    filters: Float[Tensor, "F C h k"]

    def __init__(
        self,
        filters: Float[Tensor, "F C h k"],
        contrast: float,
        cells: int = 3,
        threshold: float = 0.5,
        stride: int = 1,
        dilation: int = 1,
        series: bool = False,
    ) -> None:
        super().__init__()
        shape = list(filters.shape)
        right = filters.ndim == 4 and shape[2] == (1 if series else shape[3])
        if not (right and 1 <= shape[0] <= MAX_FILTERS and 2 <= shape[3] <= MAX_SIDE):
            raise InputError(
                f"filters are 1 to {MAX_FILTERS} patches of 2 to {MAX_SIDE} entries a side, "
                f"[F, C, k, k], or [F, C, 1, k] of series; got {shape}"
            )
        if not all(1 <= size <= MAX_CELLS for size in (cells, stride, dilation)):
            raise InputError(
                f"patch features have 1 to {MAX_CELLS} cells along each side, and a stride and "
                f"dilation in the same range; got {cells}, {stride} and {dilation}"
            )
        if not (0 <= threshold < math.inf and 0 < contrast < math.inf):
            raise InputError(
                "the contrast of patch features must be positive, their threshold at least 0, and "
                f"both finite; got {contrast} and {threshold}"
            )
        self.contrast, self.cells, self.threshold = contrast, cells, threshold
        self.stride, self.dilation, self.series = stride, dilation, series
        self.register_buffer("filters", filters)

    @staticmethod
    @torch.no_grad()
    def of(
        x: Float[Tensor, "N *event"],
        *,
        num_filters: int = 64,
        size: int = 5,
        cells: int = 3,
        threshold: float = 0.5,
        stride: int = 1,
        dilation: int = 1,
        series: bool = False,
        generator: torch.Generator,
    ) -> "PatchFeatures":
        """The map whose filters are patches of these inputs.

        Parameters
        ----------
        x : Tensor of shape (N, H, W) or (N, C, H, W); (N, T) or (N, C, T) with `series`
            Inputs; no labels are needed.
        num_filters, size : int, default=64 and 5
            Filters, and their entries along each side.
        cells, threshold, stride, dilation, series
            As in `PatchFeatures`.
        generator : torch.Generator
            Draws the patches.

        Returns
        -------
        PatchFeatures
            On the device of the inputs.
        """
        images = _as_images(x, series)
        sides = (1 if series else size, size)
        if any(
            _span(n, dilation) > length for n, length in zip(sides, images.shape[2:], strict=True)
        ):
            raise InputError(
                f"patches of {size} entries, {dilation} apart, do not fit into inputs "
                f"{list(x.shape[1:])}"
            )
        contrast = CONTRAST * _variance(images)
        patches = _drawn(images, sides, dilation, generator).double()
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
        kernel = filters.to(images).reshape(-1, images.shape[1], *sides)
        return PatchFeatures(kernel, contrast, cells, threshold, stride, dilation, series)

    @property
    def num_features(self) -> int:
        """D."""
        return 2 * len(self.filters) * self.cells ** (1 if self.series else 2)

    def forward(self, x: Float[Tensor, "B *event"]) -> Float[Tensor, "B D"]:
        """What exceeds the threshold in each cell, scaled to length 1."""
        images = _as_images(x, self.series)
        spans = [_span(size, self.dilation) for size in self.filters.shape[2:]]
        places = [
            (length - span) // self.stride + 1
            for length, span in zip(images.shape[2:], spans, strict=True)
        ]
        if images.shape[1] != self.filters.shape[1] or min(places) < 1:
            raise InputError(
                f"these patch features are of inputs with {self.filters.shape[1]} channels and at "
                f"least {' × '.join(map(str, spans))} entries; got {list(x.shape[1:])}"
            )
        cells = (1 if self.series else self.cells, self.cells)
        rows, columns = (
            gaussian_windows(n, k, OVERLAP) for n, k in zip(places, cells, strict=True)
        )
        windows = torch.kron(rows, columns).mT.to(images)
        weights = self.filters.flatten(1).mT.to(images)
        block = max(1, ENTRIES // (windows.shape[1] * len(self.filters)))
        once = functools.partial(self._found, weights=weights, windows=windows)
        learning = images.requires_grad and torch.is_grad_enabled()
        parts = rows_of(images, block)
        return torch.cat([_FoundAgain.apply(p, once) if learning else once(p) for p in parts])

    def _found(
        self, images: Float[Tensor, "B C H W"], weights: Float[Tensor, "E F"], windows: Tensor
    ) -> Float[Tensor, "B D"]:
        """Windows [cells, places] of what filters find at each place."""
        patches = self._patches(images)
        mean = patches.mean(2, keepdim=True)
        variance = patches.square().mean(2, keepdim=True) - mean.square()
        found = patches @ weights * (variance.clamp(min=0) + self.contrast).rsqrt()
        # s = sign(r) relu(|r| − α), of which relu(r − α) = (|s| + s) / 2, and (|s| − s) / 2 is the
        # other side: half of the passes over all places
        beyond = softshrink(found, self.threshold)
        sizes, signed = windows @ beyond.abs(), windows @ beyond
        return normalize(torch.cat([sizes + signed, sizes - signed], 2).flatten(1), dim=1)

    def _patches(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B places E"]:
        """All of them, flat: matrix products with them are faster than convolutions."""
        found = images
        for axis, size in zip((2, 3), self.filters.shape[2:], strict=True):
            span = _span(size, self.dilation)
            found = found.unfold(axis, span, self.stride)[..., :: self.dilation]
        return found.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def _span(size: int, dilation: int) -> int:
    """Pixels from the first entry of a patch to its last."""
    return (size - 1) * dilation + 1


def _variance(images: Float[Tensor, "N C H W"]) -> float:
    """Of all pixels; 1 where they differ by rounding alone."""
    variance = images.var(correction=0).item()
    rounding = 10 * torch.finfo(images.dtype).eps * images.abs().max().item()
    return variance if variance > rounding**2 else 1.0


def _as_images(x: Float[Tensor, "N *event"], series: bool) -> Float[Tensor, "N C H W"]:
    """Series as images of one row, in single precision."""
    if x.ndim not in ((2, 3) if series else (3, 4)):
        kinds = "series [B, T] or [B, C, T]" if series else "images [B, H, W] or [B, C, H, W]"
        raise InputError(f"these patch features are of {kinds}; got {list(x.shape)}")
    if series:
        return (x.unsqueeze(1) if x.ndim == 2 else x).unsqueeze(2).float()
    return x.unsqueeze(1) if x.ndim == 3 else x


def _drawn(
    images: Float[Tensor, "N C H W"],
    sides: tuple[int, int],
    dilation: int,
    generator: torch.Generator,
) -> Float[Tensor, "P E"]:
    """Patches at random places of random images, flat."""
    spans = [_span(size, dilation) for size in sides]
    room = [length - span + 1 for length, span in zip(images.shape[2:], spans, strict=True)]
    highest = torch.tensor([len(images), *room])
    places = (torch.rand(NUM_PATCHES, 3, generator=generator) * highest).long().unbind(1)
    image, *corner = (place.to(images.device)[:, None, None] for place in places)
    down, across = (dilation * torch.arange(size, device=images.device) for size in sides)
    patches = images[image, :, corner[0] + down[:, None], corner[1] + across]  # [P, h, k, C]
    return patches.permute(0, 3, 1, 2).flatten(1)
