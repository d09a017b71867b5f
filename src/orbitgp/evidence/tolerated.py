"""How far can an input be changed before its label is predicted wrongly from all other data?

An invariance averages f over changed copies of an input, and the evidence asks whether the average
predicts the label. An augmentation hands single copies to a network, each with the label of the
input: every one has to be recognisable. So each input x_n is changed, and its label predicted from
all data but x_n, which the exact posterior of some of them has in closed form. The width of a
transformation T is the largest of those tried for which

    mean_n ℓ(y_n, f(T x_n) | all but y_n)  ≤  L + max(ε, ρ L),
    L = mean_n ℓ(y_n, f(x_n) | all but y_n),

where the loss ℓ is 1 for a wrong label, or the squared error of a number in units of the variance
of all. No data are held out, and nothing is learned.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.estimators import InvariantGPClassifier
from orbitgp.evidence.fitted import FittedEvidence
from orbitgp.evidence.kinds import suitable_transformations
from orbitgp.evidence.tolerance import Change, Tolerance
from orbitgp.evidence.transformations import Transformation, is_contained, orbit_of
from orbitgp.inference.exact import exact_posterior

NUM_KNOWN, NUM_CHANGED = 2000, 1000
"""Data that labels are predicted from, and those of them that are changed, at most."""

BATCH = 250


def tolerated(
    model: Any,
    X: Any,
    y: Any,
    *,
    kind: str | None = None,
    transformations: Sequence[Transformation] | None = None,
    tolerance: float = 0.01,
    relative: float = 0.1,
    random_state: int = 0,
) -> Tolerance:
    """Find how far inputs can be changed while their labels are predicted from all other data.

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
        What inputs are. Without it short rows of numbers are vectors, and (n, H, W) or
        (n, C, H, W) images; give it where a shape may be something else.
    transformations : sequence of Transformation, optional
        What to try, if not what suits the kind of data. Features that normalise contrast cannot say
        how much of it matters: of changes of values the widest is not tried by default.
    tolerance : float, default=0.01
        The share of inputs whose labels may be predicted wrongly because of the change; for
        numbers, the share of their variance that may be left unexplained because of it.
    relative : float, default=0.1
        The same as a part of the labels that are predicted wrongly anyway; the larger of both
        counts. The more errors are left, the more an augmentation can mend.
    random_state : int, default=0
        Seed of the order of the data, of orbit draws, and of the changes.

    Returns
    -------
    Tolerance
        The orbit of all changes that are tolerated, and what was tried.

    Raises
    ------
    InputError
        If the model is not fitted, the data do not suit it, or a tolerance is no share.

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
            "tolerance is a share of labels that may be predicted wrongly, above 0 and below 1, "
            f"such as 0.01; got {tolerance}"
        )
    if not 0 <= relative < 1:
        raise InputError(
            "relative is a part of the labels that are predicted wrongly anyway, from 0 to below "
            f"1, such as 0.1; got {relative}"
        )
    left_out = LeftOut(model, X, y, random_state)
    if transformations is None:
        suitable = suitable_transformations(left_out.x.shape[1:], kind, unit=model.scale_)
        transformations = [_cautious(part) for part in suitable]
    loss = left_out.unchanged.mean().item()
    limit = max(tolerance, relative * loss)
    chosen: dict[Transformation, float] = {}
    changes: list[Change] = []
    for part in transformations:
        for width in sorted(part.widths, reverse=True):
            change = left_out.changed(part, width, limit, random_state)
            changes.append(change)
            if change.tolerated:
                chosen[part] = width
                break
    needed = {part: width for part, width in chosen.items() if not is_contained(part, chosen)}
    return Tolerance(orbit_of(needed), changes, loss, limit, len(left_out.x))


def _cautious(part: Transformation) -> Transformation:
    """Changes of values without the widest."""
    return part if part.alters == "places" else replace(part, widths=part.widths[:-1])


class LeftOut:
    """Losses of inputs, or of what they were changed to, given all labels but their own."""

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
        self.unchanged = self.losses(self.x)

    def changed(
        self, part: Transformation, width: float, limit: float, random_state: int
    ) -> Change:
        """What a transformation of this width does to the losses."""
        orbit = orbit_of({part: width}).to(self.x.device)
        generator = torch.Generator().manual_seed(random_state)
        losses = self.losses(orbit.sample(self.x, 1, generator=generator).points.squeeze(1))
        rise = losses - self.unchanged
        error = rise.std().item() / len(rise) ** 0.5
        small = rise.mean().item() <= limit
        return Change(part.name, width, orbit.describe(), losses.mean().item(), error, small)

    @torch.no_grad()
    def losses(self, points: Float[Tensor, "R *event"]) -> Float[Tensor, "R"]:
        """Losses of points, one for each of the first inputs."""
        noise = self.model.posterior.noise
        means = [
            predict(self.model.sample_orbit_at(x, noise)).mean
            for x, predict in zip(points.split(BATCH), self.predictors, strict=True)
        ]
        mean, labels = torch.cat(means), self.labels[: len(points)]
        if self.classes:  # with one variance for all classes, the largest mean is most probable
            return (mean.argmax(1) != labels).double()
        return (mean - labels).square().mean(1).double()
