"""Where an invariance is dangerous: how probably f changes along a transformation.

For an exact posterior, f(x) − f(x_a) is Gaussian with a known mean and variance, so that
P(|f(x) − f(x_a)| > L) has a closed form (van der Wilk et al. 2018, section 3.1). Under the prior,
Markov's inequality bounds it (appendix A, with a kernel that is not normalised):

    P(|f(x) − f(x_a)| > L)  <  E[k(x, x) − 2 k(x, x_a) + k(x_a, x_a)] / L².

An input of class a is turned into one of class b where f_a falls and f_b rises, each by more than
L. The outputs of classes are independent given x_a, so that is the product of two probabilities,
and its bound the square.
"""

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.evidence.fitted import ESTIMATORS
from orbitgp.evidence.ranges import parts_with_ranges
from orbitgp.evidence.tables import data_frame, text_table
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.likelihoods.gaussian import Gaussian
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.names import starting_orbit
from orbitgp.orbits.ranges import Range, UniformRange

NUM_SHOWN = 10


@dataclass(frozen=True)
class Danger:
    """One transformation and one pair of classes; a regressor has no pairs.

    Parameters
    ----------
    transformation : str
        With its range.
    pair : tuple of str, optional
        Two classes.
    probability : float
        Posterior probability that f changes by more than L; or that f falls for the class of an
        input and rises for the other one, each by more than L. It is the mean over inputs, of
        either class, and over the transformation.
    prior_bound : float
        The bound of the paper's lemma on the same probability before any data are seen. It may
        exceed 1, and then says nothing.
    num_inputs : int
        Inputs that the mean is over.
    """

    transformation: str
    pair: tuple[str, str] | None
    probability: float
    prior_bound: float
    num_inputs: int


@dataclass(frozen=True)
class Certificate:
    """What `certificate` found, the most endangered first.

    Parameters
    ----------
    dangers : sequence of Danger
        One for each transformation and pair of classes.
    deviation : float
        L.

    Examples
    --------
    >>> from orbitgp import Certificate
    >>> str(Certificate([], 1.0)).splitlines()[0]
    'transformation  classes  P(change > 1)  prior bound  inputs'
    """

    dangers: Sequence[Danger]
    deviation: float

    def __post_init__(self) -> None:
        order = sorted(self.dangers, key=lambda danger: -danger.probability)
        object.__setattr__(self, "dangers", tuple(order))

    def records(self) -> list[dict[str, Any]]:
        """One dictionary for each transformation and pair, as JSON can hold it."""
        return [asdict(danger) for danger in self.dangers]

    def frame(self) -> Any:
        """The same as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns pair, probability, prior_bound and num_inputs.
        """
        return data_frame(self.records(), index="transformation")

    def __str__(self) -> str:
        """The ten most endangered."""
        change = f"P(change > {self.deviation:.3g})"
        head = ["transformation", "classes", change, "prior bound", "inputs"]
        rows = [
            [
                danger.transformation,
                " and ".join(danger.pair or ()),
                f"{danger.probability:.3f}",
                f"{danger.prior_bound:.3g}",
                str(danger.num_inputs),
            ]
            for danger in self.dangers[:NUM_SHOWN]
        ]
        return text_table(head, rows)


def certificate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    orbit: str | Orbit | None = None,
    deviation: float | None = None,
    num_draws: int = 16,
    random_state: int = 0,
) -> Certificate:
    """Ask how probably f changes by more than L along each transformation.

    Parameters
    ----------
    model : InvariantGPClassifier or InvariantGPRegressor
        A fitted estimator whose inference was exact.
    X : array-like of shape (n, H, W), (n, C, H, W) or (n, n_features)
        Inputs; some hundreds are enough.
    y : array-like of shape (n,), optional
        Their classes; those that are predicted if not given.
    orbit : str or Orbit, optional
        The transformations, such as ``Rotation.full()``; those of the model if not given.
    deviation : float, optional
        L. By default ½ for classes, half way from 1 to 0, and two standard deviations of the noise
        for numbers.
    num_draws : int, default=16
        Draws from each transformation, the same for all inputs.
    random_state : int, default=0
        Seed of these draws.

    Returns
    -------
    Certificate
        Probabilities for each transformation and each pair of classes, the highest first.

    Raises
    ------
    InputError
        If the model is not fitted, or its posterior is not exact.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbitgp import InvariantGPClassifier, certificate
    >>> digits = load_digits()
    >>> X, y = digits.images[:100], digits.target[:100]
    >>> model = InvariantGPClassifier("none", random_state=0).fit(X, y)
    >>> found = certificate(model, X[:30], y[:30], orbit="mirror")
    >>> len(found.dangers), found.dangers[0].num_inputs
    (45, 6)
    """
    if not isinstance(model, ESTIMATORS) or not hasattr(model, "model_"):
        raise InputError(f"certificate needs a fitted estimator; got {model!r:.80}")
    if not isinstance(model.model_, ExactInvariantGP):
        raise InputError(
            "certificate needs an exact posterior, but this fit gave a bound; fit fewer inputs, or "
            "raise max_exact of settings"
        )
    x = model.as_inputs(X)
    classes = getattr(model, "classes_", None)
    own = np.asarray(model.predict(X) if y is None else y)
    scale = float(np.max(getattr(model, "target_scale_", 1.0)))
    limit = _usual(model.model_, classes is None) if deviation is None else deviation / scale
    parts = model.orbit_ if orbit is None else starting_orbit(orbit, x.shape[1:])
    parts.measured_in(model.scale_)
    generator = torch.Generator().manual_seed(random_state)
    dangers = []
    for words, part in alone(parts):
        noise = part.shared_noise(part.num_shared(num_draws), generator=generator)
        changes = _changes(model.model_, x, part, noise)
        if classes is None:
            fall, rise = _probabilities(changes, limit)
            dangers.append(_danger(words, None, fall + rise, changes.bound(limit)))
        else:
            dangers += _pairs(words, changes, own, classes, limit)
    return Certificate(dangers, limit * scale)


def _usual(model: ExactInvariantGP, is_regression: bool) -> float:
    """L, if none is given."""
    likelihood = model.likelihood
    assert isinstance(likelihood, Gaussian)
    return 2 * likelihood.noise.item() ** 0.5 if is_regression else 0.5


def alone(orbit: Orbit) -> Iterator[tuple[str, Orbit]]:
    """Each transformation of an orbit in words, and without the others, with its range as it is."""
    for part, found in parts_with_ranges(orbit):
        ranges = getattr(part, "ranges", None)
        if not isinstance(ranges, UniformRange):
            if part.size > 1:
                yield part.describe(), part
            continue
        for column in ranges.used.nonzero().flatten().tolist():
            one = copy.deepcopy(part)
            assert isinstance(one.ranges, UniformRange)
            one.ranges.freeze(column)
            yield _words(found[column]), one


@dataclass(frozen=True)
class _Changes:
    """Of f(x) − f(x_a) for every input and draw."""

    mean: Float[Tensor, "N S C"]
    variance: Float[Tensor, "N S"]
    prior: Float[Tensor, "N S"]
    """The variance before any data were seen."""

    def bound(self, limit: float) -> Float[Tensor, "N S"]:
        """On P(|f(x) − f(x_a)| > L) under the prior."""
        return self.prior / limit**2


@torch.no_grad()
def _changes(
    model: ExactInvariantGP, x: Tensor, part: Orbit, noise: Float[Tensor, "1 S K"]
) -> _Changes:
    means, variances, priors = [], [], []
    shared = model.posterior.noise
    for one in x.split(1):
        moved = torch.cat([one, part.at(one, noise).points[0]])
        sample = model.sample_orbit_at(moved, shared)
        mean, covariance, prior = model.posterior.joint_with_prior(model.kernel, sample)
        means.append(mean[:1] - mean[1:])
        variances.append(_of_differences(covariance))
        priors.append(_of_differences(prior))
    # ≥ 0 but for rounding
    variance = torch.stack(variances).clamp(min=1e-12)
    return _Changes(torch.stack(means), variance, torch.stack(priors).clamp(min=0))


def _of_differences(covariance: Float[Tensor, "S1 S1"]) -> Float[Tensor, "S"]:
    """Var(f_0 − f_s) = K_00 + K_ss − 2 K_0s."""
    return covariance[0, 0] + covariance.diagonal()[1:] - 2 * covariance[0, 1:]


def _probabilities(
    changes: _Changes, limit: float
) -> tuple[Float[Tensor, "N S C"], Float[Tensor, "N S C"]]:
    """That f falls, and that it rises, by more than L."""
    spread = changes.variance.sqrt().unsqueeze(-1)
    fall = torch.special.ndtr((changes.mean - limit) / spread)
    return fall, torch.special.ndtr((-changes.mean - limit) / spread)


def _pairs(
    words: str, changes: _Changes, own: np.ndarray, classes: np.ndarray, limit: float
) -> Iterator[Danger]:
    """All pairs of classes that inputs are of."""
    fall, rise = _probabilities(changes, limit)
    bound = changes.bound(limit).square()
    rows = [torch.from_numpy(own == label) for label in classes]
    for a, b in itertools.combinations(range(len(classes)), 2):
        either = rows[a] | rows[b]
        if either.any():
            turned = [(fall[..., c] * rise[..., d])[rows[c]] for c, d in ((a, b), (b, a))]
            pair = str(classes[a]), str(classes[b])
            yield _danger(words, pair, torch.cat(turned), bound[either])


def _danger(words: str, pair: tuple[str, str] | None, probability: Tensor, bound: Tensor) -> Danger:
    """Means over inputs and draws."""
    return Danger(words, pair, probability.mean().item(), bound.mean().item(), len(probability))


def _words(found: Range) -> str:
    """A range in words."""
    between = "" if found.unit in ("", "°", "%") else " "
    low, high = (f"{end:.3g}".replace("-", "−") for end in (found.low, found.high))
    return f"{found.words} {low} … {high}{between}{found.unit}"
