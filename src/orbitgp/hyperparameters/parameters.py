"""The free hyperparameters of a model as one vector, with bounds.

Ranges and lengthscales enter by their logarithms; other learnable numbers of orbit and kernel as
they are. The kernel's variance is no part of the vector: it has its best value in closed form.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from orbitgp.kernels import Kernel, with_lengthscale
from orbitgp.orbit_model import OrbitModel
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.ranges import UniformRange

NARROWEST = 1e-6
"""The width of a range that is switched off."""

REACH = 10.0
"""How far a lengthscale's logarithm, or another number, may move from where it starts."""


@dataclass(frozen=True)
class _Part:
    """Some numbers of the vector: the tensor behind them, its positive value, and how to set it."""

    raw: Tensor
    value: Callable[[], Tensor]
    assign: Callable[[Tensor], None]
    chosen: Tensor
    upper: Tensor


class Parameters:
    """z ∈ R^P, its bounds, and which of its entries are widths of ranges or lengthscales."""

    def __init__(self, model: OrbitModel) -> None:
        orbit, kernel = model.orbit, model.kernel
        ranges = learned_ranges(orbit)
        self._parts = [_range_part(part) for part in ranges]
        widths = [int(part.chosen.sum()) for part in self._parts]
        self._parts += [_length_part(part) for part in with_lengthscale(kernel)]
        own = {id(part.raw) for part in self._parts}
        scales = {id(p) for name, p in kernel.named_parameters() if _is_scale(name)}
        self._others = [
            p
            for p in (*orbit.parameters(), *kernel.parameters())
            if p.requires_grad and id(p) not in own | scales
        ]
        self.num_widths, self._ends = sum(widths), np.cumsum([0, *widths]).tolist()
        self.num_lengths = sum(int(p.chosen.sum()) for p in self._parts) - self.num_widths
        start, uppers = self.vector(), [part.upper for part in self._parts]
        most = np.concatenate(
            [upper.double().log().cpu().numpy() for upper in uppers] or [start[:0]]
        )
        self.bounds = [
            (math.log(NARROWEST), high) if place < self.num_widths else (at - REACH, at + REACH)
            for place, (at, high) in enumerate(zip(start, _filled(most, len(start)), strict=True))
        ]

    @property
    def widths(self) -> slice:
        """The entries that are log widths of ranges."""
        return slice(0, self.num_widths)

    @property
    def lengths(self) -> slice:
        """The entries that are log lengthscales."""
        return slice(self.num_widths, self.num_widths + self.num_lengths)

    @property
    def raw(self) -> list[Tensor]:
        """The tensors that gradients are taken with respect to."""
        return [part.raw for part in self._parts] + self._others

    @torch.no_grad()
    def vector(self) -> np.ndarray:
        """z as the model has it."""
        logs = [part.value()[part.chosen].double().log() for part in self._parts]
        return _joined([*logs, *(p.double().flatten() for p in self._others)])

    @torch.no_grad()
    def assign(self, z: np.ndarray) -> None:
        """Give the model these hyperparameters."""
        rest = torch.from_numpy(np.array(z, dtype=np.float64))
        for part in self._parts:
            own, rest = rest.tensor_split([int(part.chosen.sum())])
            value = part.value().clone()
            value[part.chosen] = own.exp().to(value)
            part.assign(value)
        for parameter in self._others:
            own, rest = rest.tensor_split([parameter.numel()])
            parameter.copy_(own.view_as(parameter))

    def lifted(self, z: np.ndarray, start: np.ndarray) -> np.ndarray:
        """z with no range narrower than half of where it started.

        Gradients are proportional to the square of a narrow range, so one that is switched off
        would stay so.
        """
        other = z.copy()
        other[self.widths] = np.maximum(z, start + math.log(0.5))[self.widths]
        return other

    def without_parts(self, z: np.ndarray) -> list[np.ndarray]:
        """z with all ranges of one part switched off, for each part of a composition."""
        found = []
        for low, high in pairwise(self._ends) if len(self._ends) > 2 else ():
            found.append(z.copy())
            found[-1][low:high] = math.log(NARROWEST)
        return found

    def gradient(self, of_raw: Sequence[Tensor]) -> np.ndarray:
        """∂/∂z from the gradients with respect to `raw`."""
        found = []
        for part, gradient in zip(self._parts, of_raw, strict=False):
            with torch.enable_grad():
                value = part.value()
                (slope,) = torch.autograd.grad(value.sum(), part.raw)
            # an end at its limit does not move with the number behind it: leave that to the bounds
            slope = slope.where(slope > 0, torch.ones_like(slope))
            found.append((gradient * value.detach() / slope)[part.chosen].double())
        found += [gradient.double().flatten() for gradient in of_raw[len(self._parts) :]]
        return _joined(found)


def _joined(parts: Sequence[Tensor]) -> np.ndarray:
    """One vector, which scipy can move."""
    return np.concatenate([np.zeros(0), *(part.detach().cpu().numpy() for part in parts)])


def learned_ranges(orbit: Orbit) -> list[UniformRange]:
    """Of all parts of an orbit, those with an end that is learned."""
    parts = (part for part in orbit.modules() if isinstance(part, UniformRange))
    return [part for part in parts if part.learned.any()]


def _range_part(part: UniformRange) -> _Part:
    upper = part.limit.expand_as(part.raw)[part.learned]
    return _Part(part.raw, lambda: part.widths, part.assign_widths, part.learned, upper)


def _length_part(kernel: Kernel) -> _Part:
    raw = torch.as_tensor(kernel.raw_lengthscale)

    def assign(value: Tensor) -> None:
        kernel.lengthscale = value

    everything = torch.ones_like(raw, dtype=torch.bool)
    upper = torch.full_like(raw, math.inf)[everything]
    return _Part(raw, lambda: torch.as_tensor(kernel.lengthscale), assign, everything, upper)


def _is_scale(name: str) -> bool:
    """Whether a parameter of a kernel multiplies all of its values."""
    return name.rsplit(".", 1)[-1] in ("raw_variance", "raw_outputscale")


def _filled(values: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([values, np.full(size - len(values), math.inf)])
