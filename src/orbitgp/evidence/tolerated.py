"""How far may an input be changed before its label, told from all other data, becomes wrong?

An invariance averages f over changed copies of an input, and the evidence asks whether the average
tells the label. An augmentation hands single copies to a network, each with the label of the input:
every one has to be recognisable. So each input x_n is changed, and its label predicted from all
data but x_n, which an exact posterior has in closed form. The width of a transformation is the
largest of those tried for which

    mean_n ℓ(y_n, f(T x_n) | all but y_n)  ≤  mean_n ℓ_n + 2 √(Var ℓ_n / n),

with ℓ_n the loss of x_n as it is: 1 for a wrong label, or the squared error of a number. No data
are held out, and nothing is learned.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.estimators import InvariantGPClassifier
from orbitgp.evidence.fitted import ESTIMATORS
from orbitgp.evidence.kinds import kind_of
from orbitgp.evidence.tolerance import Change, Tolerance
from orbitgp.evidence.transformations import Transformation, is_contained, orbit_of
from orbitgp.exact_model import ExactInvariantGP
from orbitgp.gaussians import slices

NUM_CHANGED = 1000
"""Inputs that are changed, at most."""

DEVIATIONS = 2.0
"""Standard errors of the loss by which it may rise."""

BATCH = 250


def tolerated(
    model: Any,
    X: Any,
    y: Any,
    *,
    kind: str | None = None,
    transformations: Sequence[Transformation] | None = None,
    random_state: int = 0,
) -> Tolerance:
    """Find how far inputs may be changed before their labels cannot be told from all others.

    These are the ranges for an augmentation that hands changed inputs to a network, one by one. An
    orbit that `discover` has found is made to be averaged over, and may be wider than that.

    Parameters
    ----------
    model : InvariantGPClassifier or InvariantGPRegressor
        A fitted estimator with exact inference; one without an orbit takes seconds, and one with
        an invariance tolerates more of it.
    X, y : array-like
        The data that it was fitted to.
    kind : {"images", "series", "points", "vectors"}, optional
        What inputs are, if shapes do not tell: without it rows of numbers are vectors, and all
        others images.
    transformations : sequence of Transformation, optional
        What to try, if not what suits the kind of data.
    random_state : int, default=0
        Seed of the changes.

    Returns
    -------
    Tolerance
        The orbit of all changes that are tolerated, and what was tried.

    Raises
    ------
    InputError
        If the model is not fitted, its inference is not exact, or the data are others.

    See Also
    --------
    export_policy : Writes the orbit as an augmentation.
    discover : The invariances that the evidence asks for.

    Examples
    --------
    >>> import numpy as np
    >>> from orbitgp import InvariantGPRegressor, tolerated
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    >>> y = np.cos(X).sum(1)
    >>> tolerated(InvariantGPRegressor(random_state=0).fit(X, y), X, y).names
    ['swap of columns 0 and 1', 'sign of column 0', 'sign of column 1']
    """
    left_out = LeftOut(model, X, y)
    if transformations is None:
        transformations = kind_of(left_out.x.shape[1:], kind)
    chosen: dict[Transformation, float] = {}
    changes: list[Change] = []
    for part in transformations:
        for width in sorted(part.widths, reverse=True):
            orbit = orbit_of({part: width}).to(left_out.x.device)
            generator = torch.Generator().manual_seed(random_state)
            points = orbit.sample(left_out.x, 1, generator=generator).points.squeeze(1)
            rise = left_out.losses(points) - left_out.expected
            small = rise.mean().item() <= left_out.limit
            loss, error = left_out.expected.mean() + rise.mean(), rise.std() / len(rise) ** 0.5
            told = orbit.describe()
            changes.append(Change(part.name, width, told, loss.item(), error.item(), small))
            if small:
                chosen[part] = width
                break
    orbit = orbit_of(_without_contained(chosen))
    loss = left_out.expected.mean().item()
    return Tolerance(orbit, changes, loss, left_out.limit, len(left_out.x))


class LeftOut:
    """Losses of data, or of what they were changed to, given all but their own label."""

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        if not isinstance(estimator, ESTIMATORS) or not hasattr(estimator, "model_"):
            raise InputError(
                "changes are tolerated by a fitted InvariantGPClassifier or InvariantGPRegressor; "
                f"got {estimator!r:.80}: call fit first"
            )
        model = estimator.model_
        if not isinstance(model, ExactInvariantGP):
            raise InputError(
                "labels are told from all others by exact inference; this model has "
                f"{estimator.evidence_kind_}: fit one to at most 20,000 of the data, with the "
                "default likelihood and num_inducing=None"
            )
        x, self.labels, _ = estimator.training_data(X, y)
        if len(x) != len(model.posterior.points):
            raise InputError(
                f"the model was fitted to {len(model.posterior.points):,} inputs, and these are "
                f"{len(x):,}: pass the data of fit"
            )
        self.model, self.classes = model, isinstance(estimator, InvariantGPClassifier)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
        self.rows = order[:NUM_CHANGED].to(x.device)
        self.x = x[self.rows]
        self.expected = self.losses(self.x)
        self.limit = DEVIATIONS * self._deviation() / len(self.x) ** 0.5

    def losses(self, points: Float[Tensor, "R *event"]) -> Float[Tensor, "R"]:
        """Of what each input was changed to."""
        return torch.cat([self._losses(points[some], self.rows[some]) for some in self._batches()])

    def _batches(self) -> list[slice]:
        return list(slices(len(self.rows), BATCH))

    def _losses(self, x: Tensor, rows: Tensor) -> Float[Tensor, "R"]:
        posterior = self.model.posterior
        with torch.no_grad():
            sample = self.model.sample_orbit_at(x, posterior.noise)
        found = posterior.predict_without(self.model.kernel, sample, rows)
        labels = self.labels[rows]
        if self.classes:  # with one variance for all classes, the largest mean is most probable
            return (found.mean.argmax(1) != labels).double()
        return (found.mean - labels).square().mean(1).double()

    def _deviation(self) -> float:
        """Of losses; as if one label more were wrong, since none of so many says little."""
        if not self.classes:
            return self.expected.std().item()
        share = (self.expected.sum().item() + 1) / (len(self.expected) + 2)
        return (share * (1 - share)) ** 0.5


def _without_contained(chosen: Mapping[Transformation, float]) -> dict[Transformation, float]:
    return {
        part: width
        for part, width in chosen.items()
        if not is_contained(part, {o: w for o, w in chosen.items() if o is not part})
    }
