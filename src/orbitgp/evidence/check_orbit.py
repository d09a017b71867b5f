"""Whether an orbit of one's own does what the library relies on."""

import copy
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from orbitgp.errors import InputError
from orbitgp.estimators.inputs import scale_of
from orbitgp.evidence.ranges import composed
from orbitgp.kernels import RBF
from orbitgp.likelihoods.gaussian import Gaussian
from orbitgp.model import InvariantGP
from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.orbits.compose import parts_of
from orbitgp.orbits.ranges import UniformRange
from orbitgp.posterior.inducing import InducingPosterior
from orbitgp.stochastic.bound import elbo

SAME = 1e-3
"""Of the largest value: inputs that differ by less are the same."""

NUM_INPUTS, NUM_DRAWS = 16, 8
FEW, MANY = (2, 150), (64, 12)
"""Draws of each input, and how often: unbiased estimates of the bound have the same mean."""


@dataclass(frozen=True)
class PropertyCheck:
    """The outcome of one check: whether the orbit has a property, and the remedy if not."""

    name: str
    passed: bool
    sentence: str

    def __str__(self) -> str:
        """One line."""
        return f"{'passed' if self.passed else 'FAILED'}  {self.name}: {self.sentence}"


@dataclass(frozen=True)
class OrbitCheck:
    """What `check_orbit` found.

    Parameters
    ----------
    findings : sequence of PropertyCheck
        One for each property.

    Examples
    --------
    >>> from orbitgp import OrbitCheck
    >>> OrbitCheck([]).passed
    True
    """

    findings: Sequence[PropertyCheck]

    @property
    def passed(self) -> bool:
        """Whether the orbit has all properties."""
        return all(finding.passed for finding in self.findings)

    def __str__(self) -> str:
        """A line for each property."""
        return "\n".join(map(str, self.findings))


def check_orbit(orbit: Orbit, X: Any, *, random_state: int = 0) -> OrbitCheck:
    """Test a transformation of your own on some inputs.

    Parameters
    ----------
    orbit : Orbit
        Such as a `FunctionOrbit`.
    X : array-like of shape (n, ...)
        Inputs like those of a fit; 16 of them are used, divided by the largest value as
        estimators do.
    random_state : int, default=0
        Seed of all random draws.

    Returns
    -------
    OrbitCheck
        For each property whether it holds, and a sentence with the remedy if not. Printed, it is
        one line for each.

    Raises
    ------
    InputError
        If it is no orbit, or there are no inputs.

    See Also
    --------
    FunctionOrbit : An orbit from a function.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import FunctionOrbit, check_orbit
    >>> X = torch.rand(20, 30, generator=torch.Generator().manual_seed(0)).numpy()
    >>> right = FunctionOrbit(lambda x, gain: x * torch.exp(gain), -0.1, 0.1)
    >>> check_orbit(right, X).passed
    True
    >>> wrong = FunctionOrbit(lambda x, gain: x * gain, -0.1, 0.1)
    >>> str(check_orbit(wrong, X).findings[1])[:55]
    'FAILED  identity: with ranges of width 0 an input chang'
    """
    if not isinstance(orbit, Orbit):
        raise InputError(
            f"check_orbit takes an orbit, such as FunctionOrbit(f, -0.1, 0.1); got {orbit!r:.80}"
        )
    given = np.asarray(X, dtype=np.float64)
    if given.ndim < 2 or not len(given) or not np.isfinite(given).all():
        raise InputError(f"X must be finite inputs [n, ...]; got shape {list(given.shape)}")
    x = torch.from_numpy(given[:NUM_INPUTS] / scale_of(given))
    x = x.float() if x.ndim > 2 else x
    return OrbitCheck(list(_findings(copy.deepcopy(orbit), x, random_state)))


def _findings(orbit: Orbit, x: Tensor, seed: int) -> Iterator[PropertyCheck]:
    """One property after another; without the first none of the others can be asked."""

    def seeded() -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    def sampled(inputs: Tensor) -> Tensor:
        with torch.no_grad():
            return orbit.sample(inputs, _count(orbit), generator=seeded()).points

    first = _shapes(lambda: sampled(x), x, _count(orbit))
    yield first
    if not first.passed:
        return
    yield _identity(orbit, x)
    yield _gradients(orbit, x, seeded())
    yield _independence(orbit, x, seeded())
    yield _determinism(lambda: sampled(x))
    cost = _cost(orbit, x, seeded())
    yield cost
    if cost.passed:  # the last one takes hundreds of draws
        yield _bound(orbit, x, seeded())


def _count(orbit: Orbit) -> int:
    return int(min(NUM_DRAWS, orbit.size))


def _finding(name: str, passed: bool, good: str, bad: str) -> PropertyCheck:
    return PropertyCheck(name, passed, good if passed else bad)


def _shapes(sampled: Callable[[], Tensor], x: Tensor, count: int) -> PropertyCheck:
    """Points [N, S, *event] with the dtype of the inputs, all finite."""
    name = "shapes"
    try:
        points = sampled()
    except (InputError, RuntimeError, TypeError, ValueError, IndexError) as error:
        return PropertyCheck(
            name, False, f"drawing failed ({error}); let it take inputs [N, *event]"
        )
    expected = (len(x), count, *x.shape[1:])
    if tuple(points.shape) != expected or points.dtype != x.dtype:
        return PropertyCheck(
            name,
            False,
            f"points are {list(points.shape)} of {points.dtype}, where {list(expected)} of "
            f"{x.dtype} was expected; keep the shape and the dtype of the inputs",
        )
    return _finding(
        name,
        bool(torch.isfinite(points).all()),
        f"points are {list(points.shape)} and finite",
        "some points are NaN or infinite; look for a division by 0 or a logarithm, or start with a "
        "narrower range",
    )


@torch.no_grad()
def _identity(orbit: Orbit, x: Tensor) -> PropertyCheck:
    """Ranges of width 0 change nothing, and a group has an element that changes nothing."""
    # what has no ranges, such as noise, cannot be switched off: it is left out
    kept = [part for part in parts_of(orbit) if isinstance(part, FiniteOrbit) or _has_ranges(part)]
    still = copy.deepcopy(composed(kept or [orbit]))
    for part in still.modules():
        if isinstance(part, UniformRange):
            part.frozen.zero_()
            part.learned.zero_()
    generator = torch.Generator().manual_seed(0)
    if isinstance(still, FiniteOrbit):
        points = still.enumerate(x).points
    elif _has_ranges(orbit):
        points = still.sample(x, 64, generator=generator).points
    else:
        return PropertyCheck("identity", True, "there is no range whose width could be 0")
    finite = any(isinstance(part, FiniteOrbit) for part in parts_of(still))
    gaps = (points - x.unsqueeze(1)).flatten(2).abs().amax(2)
    worst = (gaps.amin(1) if finite else gaps.amax(1)).amax().item() / x.abs().amax().item()
    return _finding(
        "identity",
        worst <= SAME,
        "ranges of width 0 leave inputs as they are",
        f"with ranges of width 0 an input changes by {worst:.0%} of the largest value; make the "
        "function the identity where its parameters are 0, as x * torch.exp(gain) is and x * gain "
        "is not".replace("%", " %"),
    )


def _has_ranges(orbit: Orbit) -> bool:
    return any(isinstance(part, UniformRange) for part in orbit.modules())


def _gradients(orbit: Orbit, x: Tensor, generator: torch.Generator) -> PropertyCheck:
    """Every learned number moves the points."""
    learned = {name: p for name, p in orbit.named_parameters() if p.requires_grad}
    if not learned:
        return PropertyCheck("gradients", True, "nothing is learned")
    name = "gradients"
    try:
        with torch.enable_grad():
            points = orbit.sample(x, _count(orbit), generator=generator).points
            found = torch.autograd.grad(
                points.square().sum(), list(learned.values()), allow_unused=True
            )
    except (InputError, RuntimeError) as error:
        return PropertyCheck(name, False, f"torch cannot differentiate the points ({error})")
    dead = []
    for (own, parameter), gradient in zip(learned.items(), found, strict=True):
        moved = torch.zeros_like(parameter) if gradient is None else gradient
        mask = _learned_mask(orbit, own, parameter)
        if not torch.isfinite(moved).all() or (moved[mask] == 0).any():
            dead.append(own)
    return _finding(
        name,
        not dead,
        f"all {sum(p.numel() for p in learned.values())} learned numbers move the points",
        f"the points do not change with {', '.join(dead)}, or not smoothly; use torch operations "
        "that are differentiable in the parameters (no rounding, no indexing by them), or freeze "
        "the range with learn_low=False, learn_high=False",
    )


def _learned_mask(orbit: Orbit, name: str, parameter: Tensor) -> Tensor:
    """Entries of a parameter that are learned; frozen ends of a range have no gradient."""
    owner = orbit.get_submodule(name.rpartition(".")[0])
    if isinstance(owner, UniformRange):
        return owner.learned
    return torch.ones_like(parameter, dtype=torch.bool)


@torch.no_grad()
def _independence(orbit: Orbit, x: Tensor, generator: torch.Generator) -> PropertyCheck:
    """An input's points depend on its own noise alone, and differ from draw to draw."""
    name, count = "independent draws", _count(orbit)
    noise = orbit.noise(len(x), count, generator=generator)
    together = orbit.transform(x, noise)
    apart = torch.cat([orbit.transform(x[n : n + 1], noise[n : n + 1]) for n in range(len(x))])
    largest = x.abs().amax().item()
    gap = (together - apart).abs().amax().item()
    if gap > SAME * largest:
        return PropertyCheck(
            name,
            False,
            f"an input in a batch is transformed differently than alone, by {gap / largest:.2g} of "
            "the largest value; let no input of a batch influence another (no mean over the batch)",
        )
    spread = (together - together[:, :1]).abs().amax().item()
    return _finding(
        name,
        count == 1 or spread > 0,
        "each input has draws of its own, whatever batch it is in",
        "all draws of an input are the same; use the noise that the orbit is given",
    )


def _determinism(sampled: Callable[[], Tensor]) -> PropertyCheck:
    """The same generator leads to the same points, whatever torch's own generator says."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(1)
        first = sampled()
        torch.default_generator.manual_seed(2)
        second = sampled()
    return _finding(
        "determinism",
        torch.equal(first, second),
        "the same generator gives the same points",
        "the same generator gives different points; draw nothing inside the transformation, or "
        "with the generator that is passed",
    )


@torch.no_grad()
def _bound(orbit: Orbit, x: Tensor, generator: torch.Generator) -> PropertyCheck:
    """The mean of estimates from few draws is the bound from all points, or from many."""
    name, flat = "unbiased bound", x.flatten(1)
    few = int(min(FEW[0], orbit.size))
    if orbit.size <= few:
        return PropertyCheck(name, True, "an orbit of so few points is never sampled")
    distance = torch.pdist(flat.double()).median().clamp(min=1e-6).item()
    model = InvariantGP(
        orbit=orbit,
        kernel=RBF(1.0, distance).to(flat),
        posterior=InducingPosterior(flat[: max(2, len(x) // 2)].clone(), num_outputs=1),
        likelihood=Gaussian(noise=0.1),
    ).to(flat.dtype)
    y = flat[:, :1].double() - flat[:, :1].double().mean()

    def estimates(num_samples: int | None, times: int) -> Tensor:
        options = {"num_data": len(x), "num_samples": num_samples, "generator": generator}
        return torch.stack([elbo(model, x, y, **options).value for _ in range(times)]).double()

    whole = isinstance(orbit, FiniteOrbit) and orbit.size <= 64
    reference = estimates(None if whole else MANY[0], 1 if whole else MANY[1])
    found = estimates(few, FEW[1])
    errors = [e.var().item() / len(e) if len(e) > 1 else 0.0 for e in (found, reference)]
    error = math.sqrt(sum(errors))
    gap = (found.mean() - reference.mean()).item()
    oracle = "all points" if whole else f"{MANY[0]} draws"
    nats = f"{gap:.2g} ± {error:.1g} nats"
    good = f"the mean bound is the same from {few} draws as from {oracle}: it differs by {nats}"
    return _finding(
        name,
        abs(gap) <= 4 * error + 1e-9 * abs(reference.mean().item()),
        good,
        f"the mean bound from {few} draws differs from that of {oracle} by {nats}, which is more "
        "than chance; let draws be independent and equally distributed",
    )


@torch.no_grad()
def _cost(orbit: Orbit, x: Tensor, generator: torch.Generator) -> PropertyCheck:
    """More inputs take no more operations: a loop over them would."""
    noise, few = orbit.noise(len(x), _count(orbit), generator=generator), (len(x) + 1) // 2
    before, all_of_them = (
        _num_operations(functools.partial(orbit.transform, x[:n], noise[:n])) for n in (few, len(x))
    )
    more = len(x) - few
    return _finding(
        "cost",
        not more or all_of_them - before < more,
        f"{all_of_them} operations for {len(x)} inputs with {noise.shape[1]} draws each",
        f"{before} operations for {few} inputs, and {all_of_them} for {len(x)}, where a fit takes "
        "thousands at a time; transform all inputs of a batch at once instead of one after the "
        "other",
    )


class _Counting(TorchFunctionMode):
    """Counts the operations of torch that are called within it."""

    count = 0

    def __torch_function__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def _num_operations(work: Callable[[], Any]) -> int:
    with _Counting() as counting:
        work()
    return counting.count
