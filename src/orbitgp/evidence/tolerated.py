"""How far may an input be changed before its label, told from all other data, becomes wrong?

An invariance averages f over changed copies of an input, and the evidence asks whether the average
tells the label. An augmentation hands single copies to a network, each with the label of the input:
every one has to be recognisable. So each input x_n is changed, and its label predicted from all
data but x_n, which the exact posterior of some of them has in closed form. The width of a
transformation is the largest of those tried for which

    mean_n ℓ(y_n, f(T x_n) | all but y_n)  ≤  mean_n ℓ(y_n, f(x_n) | all but y_n) + ε,

where the loss ℓ is 1 for a wrong label, or the squared error of a number in units of the variance
of all. No data are held out, and nothing is learned.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.estimators import InvariantGPClassifier
from orbitgp.evidence.fitted import FittedEvidence
from orbitgp.evidence.kinds import kind_of
from orbitgp.evidence.tolerance import Change, Tolerance
from orbitgp.evidence.transformations import Transformation, is_contained, orbit_of
from orbitgp.inference.exact import exact_posterior

NUM_KNOWN, NUM_CHANGED = 2000, 1000
"""Data that labels are told from, and those of them that are changed, at most."""

BATCH = 250


def tolerated(
    model: Any,
    X: Any,
    y: Any,
    *,
    kind: str | None = None,
    transformations: Sequence[Transformation] | None = None,
    tolerance: float = 0.01,
    random_state: int = 0,
) -> Tolerance:
    """Find how far inputs may be changed before their labels cannot be told from all others.

    These are the ranges for an augmentation that hands changed inputs to a network, one by one. An
    orbit that `discover` has found is made to be averaged over, and may be wider than that.

    Parameters
    ----------
    model : InvariantGPClassifier or InvariantGPRegressor
        A fitted estimator; one without an orbit answers in seconds, and one with an invariance
        tolerates more of it.
    X, y : array-like
        The data that it was fitted to.
    kind : {"images", "series", "points", "vectors"}, optional
        What inputs are, if shapes do not tell: without it rows of numbers are vectors, and all
        others images.
    transformations : sequence of Transformation, optional
        What to try, if not what suits the kind of data.
    tolerance : float, default=0.01
        How many more of the changed inputs may have a label that is told wrongly, as a share; of
        numbers, how much more of their variance may be left unexplained.
    random_state : int, default=0
        Seed of the order of the data, of orbit draws, and of the changes.

    Returns
    -------
    Tolerance
        The orbit of all changes that are tolerated, and what was tried.

    Raises
    ------
    InputError
        If the model is not fitted, the data do not suit it, or the tolerance is no share.

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
    if not 0 < tolerance < 1:
        raise InputError(
            "tolerance is a share of labels that may be told wrongly, above 0 and below 1, such as "
            f"0.01; got {tolerance}"
        )
    left_out = LeftOut(model, X, y, random_state)
    if transformations is None:
        transformations = kind_of(left_out.x.shape[1:], kind)
    chosen: dict[Transformation, float] = {}
    changes: list[Change] = []
    for part in transformations:
        for width in sorted(part.widths, reverse=True):
            change = left_out.changed(part, width, tolerance, random_state)
            changes.append(change)
            if change.tolerated:
                chosen[part] = width
                break
    needed = {part: width for part, width in chosen.items() if not is_contained(part, chosen)}
    loss = left_out.expected.mean().item()
    return Tolerance(orbit_of(needed), changes, loss, tolerance, len(left_out.x))


class LeftOut:
    """Losses of data, or of what they were changed to, given all but their own label."""

    def __init__(self, estimator: Any, X: Any, y: Any, random_state: int) -> None:
        generator = torch.Generator().manual_seed(random_state)
        asked = FittedEvidence(estimator, X, y, generator=generator)
        landscape = asked.landscape(NUM_KNOWN)
        subset, covariance = landscape.subset, landscape.covariance(asked.z)
        assert covariance is not None  # a fitted model has finite ones
        parts = subset.x, subset.targets, subset.noise, landscape.scales(covariance), covariance
        self.model, _ = exact_posterior(asked.model, *parts)
        known = asked.sampling.order[: len(subset.x)]
        self.labels = asked.sampling.problem.examples.y[known]
        self.classes = isinstance(estimator, InvariantGPClassifier)
        self.x = subset.x[:NUM_CHANGED]
        rows = torch.arange(len(self.x), device=self.x.device)
        kernel, posterior = self.model.kernel, self.model.posterior
        self.predictors = [posterior.predictor_without(kernel, some) for some in rows.split(BATCH)]
        self.expected = self.losses(self.x)

    def changed(
        self, part: Transformation, width: float, tolerance: float, random_state: int
    ) -> Change:
        """What a transformation of this width does to the losses."""
        orbit = orbit_of({part: width}).to(self.x.device)
        generator = torch.Generator().manual_seed(random_state)
        losses = self.losses(orbit.sample(self.x, 1, generator=generator).points.squeeze(1))
        rise = losses - self.expected
        error = rise.std().item() / len(rise) ** 0.5
        small = rise.mean().item() <= tolerance
        return Change(part.name, width, orbit.describe(), losses.mean().item(), error, small)

    @torch.no_grad()
    def losses(self, points: Float[Tensor, "R *event"]) -> Float[Tensor, "R"]:
        """Of what each of the first inputs was changed to."""
        noise = self.model.posterior.noise
        means = [
            predict(self.model.sample_orbit_at(x, noise)).mean
            for x, predict in zip(points.split(BATCH), self.predictors, strict=True)
        ]
        mean, labels = torch.cat(means), self.labels[: len(points)]
        if self.classes:  # with one variance for all classes, the largest mean is most probable
            return (mean.argmax(1) != labels).double()
        return (mean - labels).square().mean(1).double()
