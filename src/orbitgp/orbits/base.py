"""What every orbit can do: draw noise without parameters, then transform with it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.quasirandom import SobolEngine

from orbitgp.errors import InputError
from orbitgp.orbits.ranges import Range, UniformRange
from orbitgp.values import OrbitSample

UNIT = 2**24
"""Numbers k / 2²⁴, as `torch.rand` draws them, are exact in float32."""


def repeat(x: Float[Tensor, "N *event"], num_samples: int) -> Float[Tensor, "NS *event"]:
    """Each input S times in a row, as a copy that may be changed."""
    return x.repeat_interleave(num_samples, 0)


def check_inputs(x: Shaped[Tensor, "*N_event"]) -> None:
    """Inputs that no model can use are refused before any work is done."""
    if not isinstance(x, Tensor):
        raise InputError(
            f"inputs must be a torch tensor; got {type(x).__name__}: convert it, as in "
            "torch.as_tensor(x, dtype=torch.float32)"
        )
    if x.ndim < 2:
        raise InputError(
            f"inputs must be [N, ...]; got {list(x.shape)}: for one number each, pass x[:, None]"
        )
    if not x.is_floating_point():
        raise InputError(
            f"inputs must be floating point; got {x.dtype}: convert them, as in x.float() / 255"
        )
    if len(x) == 0 or not torch.isfinite(x).all():
        raise InputError(
            f"inputs must be finite, and at least one; got {list(x.shape)} with "
            f"{int((~torch.isfinite(x)).sum())} values that are NaN or infinite"
        )


def check_counts(num_samples: int, group_size: int) -> None:
    """Samples come in whole groups."""
    if num_samples < 1 or group_size < 1 or num_samples % group_size:
        raise InputError(
            f"num_samples must be at least 1, and a multiple of group_size; got {num_samples} "
            f"samples in groups of {group_size}"
        )


class Orbit(nn.Module, ABC):
    """A distribution p(x_a | x) of transformed inputs, as x_a = transform(x, noise).

    Derive from it for a new kind of orbit; `FunctionOrbit` is enough for most. Drawing and
    transforming are separate, so that the same noise can be used again: for common random numbers,
    and for gradients with respect to the learned parameters.

    See Also
    --------
    FunctionOrbit : An orbit from a function of your own.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import Rotation
    >>> orbit, generator = Rotation(-0.1, 0.1), torch.Generator().manual_seed(0)
    >>> orbit.sample(torch.rand(2, 8, 8), 3, generator=generator).points.shape
    torch.Size([2, 3, 8, 8])
    """

    size: float = math.inf
    """P, the number of points of a finite orbit; ∞ for a distribution."""

    noise_size: int = 1
    """K, the numbers of noise that one draw takes."""

    num_points: int = 1
    """Points of all finite parts together, if an orbit has others, too."""

    needs_images: bool = False
    """Whether inputs must be [N, H, W] or [N, C, H, W]."""

    @abstractmethod
    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """x_a for every input and sample, differentiable in the parameters of the orbit."""

    @abstractmethod
    def describe(self) -> str:
        """What has been learned, in words."""

    def measured_in(self, unit: float) -> None:
        """Take ends that are lengths for lengths of inputs before they were divided by `unit`."""

    def learned_ranges(self) -> tuple[Range, ...]:
        """Return the ranges of all parameters, in the units that people use.

        Returns
        -------
        tuple of Range
            In the order in which the parameters are applied; () without any.
        """
        return ()

    def noise(
        self, num_inputs: int, num_samples: int, *, generator: torch.Generator, group_size: int = 1
    ) -> Float[Tensor, "N S K"]:
        """Free noise, Unif(0, 1), untouched by θ; independent for each input and group of samples.

        The samples of one group cover the unit cube evenly, so that their mean is less noisy.
        """
        return even_uniforms(
            (num_inputs, num_samples, self.noise_size), group_size, generator=generator
        )

    def shared_noise(
        self, num_samples: int, *, generator: torch.Generator
    ) -> Float[Tensor, "1 S K"]:
        """Noise for S draws that all inputs share, as evenly spread as so few can be."""
        return balanced_uniforms(num_samples, self.noise_size, generator=generator).unsqueeze(0)

    def num_shared(self, num_samples: int) -> int:
        """The number of draws to share where about this many are wanted, at most P."""
        return int(min(num_samples, self.size))

    def sample(
        self,
        x: Shaped[Tensor, "*N_event"],
        num_samples: int,
        *,
        generator: torch.Generator,
        group_size: int = 1,
    ) -> OrbitSample:
        """S points of the orbit of each input, in groups that are independent of each other."""
        check_inputs(x)
        check_counts(num_samples, group_size)
        draws = {"generator": generator, "group_size": group_size}
        return self.at(x, self.noise(len(x), num_samples, **draws))

    def at(self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "R S K"]) -> OrbitSample:
        """The points that this noise leads to; that of one row makes the same draws for all x."""
        noise = noise.to(x.device)
        points = self.alike(noise, x)(x) if len(noise) == 1 else self.transform(x, noise)
        return OrbitSample(points, self.size)

    def alike(
        self, noise: Float[Tensor, "1 S K"], like: Float[Tensor, "N *event"]
    ) -> Callable[[Float[Tensor, "N *event"]], Float[Tensor, "N S *event"]]:
        """The same S draws for all inputs, as a function of inputs like these.

        Orbits compute here, once, what depends on the draws alone.
        """
        del like
        return lambda x: self.transform(x, noise.expand(x.shape[0], -1, -1))

    def each(
        self, noise: Float[Tensor, "1 S K"], like: Float[Tensor, "N *event"]
    ) -> Callable[[Float[Tensor, "N S *event"]], Float[Tensor, "N S *event"]]:
        """Draw s for sample s of every input, where another orbit made S samples of each."""
        del like

        def transform(points: Float[Tensor, "N S *event"]) -> Float[Tensor, "N S *event"]:
            rows = noise.expand(points.shape[0], -1, -1).flatten(0, 1).unsqueeze(1)
            moved = self.transform(points.flatten(0, 1), rows)
            return moved.squeeze(1).unflatten(0, (-1, noise.shape[1]))

        return transform

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse what can be seen, from a few inputs, to be no orbit; by default nothing."""

    def log_prior(self) -> Float[Tensor, ""]:
        """Log density of the learned ranges under their priors; 0 without any."""
        terms = [part.log_prior() for part in self.modules() if isinstance(part, UniformRange)]
        return torch.stack(terms).sum() if terms else torch.zeros(())


class FiniteOrbit(Orbit):
    """P equally likely points, sampled without replacement or enumerated.

    The noise is the number of the point, 0 … P − 1, kept as a float so that orbits compose, which
    is exact for P ≤ 2²⁴.

    See Also
    --------
    PermutationGroup, QuarterTurns, Mirror, CyclicShifts, SignFlips : The finite orbits there are.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import SignFlips
    >>> SignFlips(0).enumerate(torch.tensor([[3.0]])).points.flatten()
    tensor([ 3., -3.])
    """

    @abstractmethod
    def act(
        self, x: Float[Tensor, "N *event"], index: Int[Tensor, "N S"]
    ) -> Float[Tensor, "N S *event"]:
        """The points with these numbers."""

    def noise(
        self, num_inputs: int, num_samples: int, *, generator: torch.Generator, group_size: int = 1
    ) -> Float[Tensor, "N S 1"]:
        """Numbers of S different points, uniform over subsets, in random order."""
        del group_size  # different points are all the evenness that there is
        index = distinct_integers(num_inputs, num_samples, int(self.size), generator=generator)
        return index.unsqueeze(-1).float()

    def shared_noise(
        self, num_samples: int, *, generator: torch.Generator
    ) -> Float[Tensor, "1 S 1"]:
        """Numbers of S different points, the same for all inputs."""
        return self.noise(1, num_samples, generator=generator)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """The points that the noise numbers."""
        return self.act(x, noise.squeeze(-1).long())

    def enumerate(self, x: Shaped[Tensor, "*N_event"]) -> OrbitSample:
        """Every point of the orbit of every input."""
        check_inputs(x)
        index = torch.arange(int(self.size), device=x.device).expand(len(x), -1)
        return OrbitSample(self.act(x, index), self.size)


class Identity(FiniteOrbit):
    """The orbit of one point: no invariance, an ordinary Gaussian process.

    See Also
    --------
    Orbit : What all orbits have in common.

    Examples
    --------
    >>> from orbitgp import Identity
    >>> Identity().describe()
    'no invariance'
    """

    size = 1

    def act(
        self, x: Float[Tensor, "N *event"], index: Int[Tensor, "N S"]
    ) -> Float[Tensor, "N S *event"]:
        """The input itself."""
        return repeat(x, index.shape[1]).unflatten(0, index.shape)

    def describe(self) -> str:
        """In words."""
        return "no invariance"


def even_uniforms(
    shape: tuple[int, int, int], group_size: int, *, generator: torch.Generator
) -> Float[Tensor, "N S K"]:
    """Unif(0, 1) noise [N, S, K] whose groups of G samples are evenly spread, each by itself.

    One scrambled Sobol net of G points, moved by an exclusive or with random bits for each group
    (a digital shift; Owen 2003). Given the net every point is uniform and every group independent
    of the others; the mean of a smooth function over a group of 32 is some 25 times less noisy in
    6 dimensions than over 32 independent points.
    """
    num_inputs, num_samples, size = shape
    device = generator.device
    if group_size == 1:
        return torch.rand(shape, generator=generator, device=device)
    seed = int(torch.randint(2**31, (1,), generator=generator, device=device))
    net = SobolEngine(size, scramble=True, seed=seed).draw(group_size, dtype=torch.float64)
    groups = (num_inputs, num_samples // group_size, 1, size)
    shifts = torch.randint(UNIT, groups, generator=generator, device=device)
    bits = (net * UNIT).long().to(device) ^ shifts
    return (bits.float() / UNIT).reshape(shape)


def balanced_uniforms(
    num_samples: int, size: int, *, generator: torch.Generator
) -> Float[Tensor, "S K"]:
    """Unif(0, 1) points that are stratified in each coordinate and balanced in each pair of them.

    A Latin hypercube whose halves come from an orthogonal array (Tang 1993): in each coordinate
    every interval of length 1/S holds one point, and as far as S − 1 columns go, each pair of
    coordinates has as many points in each of its four quadrants. With few points in several
    dimensions that is what counts. Where S is no power of 2, only the first holds.
    """
    device = generator.device
    random = torch.rand(num_samples, size, generator=generator, device=device)
    order = torch.rand(num_samples, size, generator=generator, device=device)
    halves = _orthogonal_halves(num_samples, size, generator=generator)
    # the rank of a point within a coordinate: first by its half, then by chance
    ranks = (halves + order).argsort(0).argsort(0)
    return (ranks + random).div_(num_samples).clamp_(max=1 - 1 / UNIT)


def _orthogonal_halves(
    num_samples: int, size: int, *, generator: torch.Generator
) -> Float[Tensor, "S K"]:
    """0 or 1 for each point and coordinate, from columns of a Hadamard matrix, in random order."""
    power, device = num_samples.bit_length() - 1, generator.device
    if num_samples != 2**power or num_samples < 4:
        return torch.zeros(num_samples, size, device=device)
    bits = torch.arange(num_samples, device=device)
    together = bits[:, None] & bits[1:]
    parity = torch.stack([(together >> shift) & 1 for shift in range(power)]).sum(0) % 2
    count = -(-size // (num_samples - 1))
    columns = [
        torch.randperm(num_samples - 1, generator=generator, device=device) for _ in range(count)
    ]
    flips = torch.randint(2, (size,), generator=generator, device=device)
    return ((parity[:, torch.cat(columns)[:size]] + flips) % 2).float()


def distinct_integers(
    num_rows: int, num_samples: int, size: int, *, generator: torch.Generator
) -> Int[Tensor, "N S"]:
    """S different integers below `size` in each row, uniform, in random order (Floyd 1987)."""
    if num_samples > size:
        raise InputError(
            f"{num_samples} different samples asked of an orbit of {size} points; "
            f"ask for at most {size}"
        )
    device = generator.device
    chosen = torch.empty(num_rows, 0, dtype=torch.long, device=device)
    for top in range(size - num_samples, size):
        draw = torch.randint(top + 1, (num_rows, 1), generator=generator, device=device)
        taken = (chosen == draw).any(1, keepdim=True)
        chosen = torch.cat([chosen, torch.where(taken, top, draw)], 1)
    shuffle = torch.rand(num_rows, num_samples, generator=generator, device=device).argsort(1)
    return chosen.gather(1, shuffle)
