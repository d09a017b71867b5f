"""What `discover` found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orbitgp.evidence.ablation import Ablation
from orbitgp.evidence.selection import SelectionStep
from orbitgp.evidence.trials import likelihood_of


@dataclass(frozen=True)
class Discovery:
    """The transformations that the evidence asks for, and how they were found.

    Parameters
    ----------
    estimator : InvariantGPClassifier or InvariantGPRegressor
        Fitted with these transformations.
    path : sequence of SelectionStep
        What was tried, in turn, and how many nats it added.
    tried : sequence of str
        The names of all transformations.
    ablation : Ablation
        What each that was taken is worth, with intervals.
    none : float
        Evidence without any invariance, in nats.
    num_data : int
        Number of inputs.
    seconds : float
        The time that all of it took.

    Examples
    --------
    >>> import numpy as np
    >>> from orbitgp import discover
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    >>> found = discover(X, np.cos(2 * X[:, 0]) * X[:, 1])
    >>> found.names
    ['sign of column 0']
    """

    estimator: Any
    path: Sequence[SelectionStep]
    tried: Sequence[str]
    ablation: Ablation
    none: float
    num_data: int
    seconds: float

    @property
    def names(self) -> list[str]:
        """The transformations that were taken."""
        taken: list[str] = []
        for step in self.path:
            if step.taken:
                taken.append(step.name)
            elif step.name in taken:  # taken before, and given up again
                taken.remove(step.name)
        return taken

    @property
    def gain(self) -> float:
        """Evidence of the fitted estimator less that without any invariance, in nats."""
        return float(self.estimator.evidence_) - self.none

    @property
    def sentence(self) -> str:
        """For a methods section."""
        tried, kind = _listed(self.tried), self.estimator.evidence_kind_
        likelihood, of = likelihood_of(self.estimator), ""
        if likelihood != "gaussian":  # ranges are learned by another one
            kind, of = f"{kind}, {likelihood}", " to the evidence of one-hot labels"
        if not self.names:
            return (
                f"Among {tried}, the marginal likelihood of {self.num_data:,} training inputs "
                "supported no invariance; no validation data were used."
            )
        found = "; ".join(str(worth) for worth in self.ablation.worths if worth.identified)
        few = self.ablation.num_data < self.num_data
        asked = f" for {self.ablation.num_data:,} of them" if few else ""
        return (
            f"Among {tried}, the marginal likelihood of {self.num_data:,} training inputs selected "
            f"{_listed(self.names)}, with {self.gain:,.0f} nats more than no invariance ({kind}); "
            f"what each is worth{of}{asked}: {found}. No validation data were used."
        )

    def records(self) -> list[dict[str, Any]]:
        """One dictionary for each step, as JSON can hold it."""
        return [asdict(step) for step in self.path]

    def __str__(self) -> str:
        """The path, and the sentence."""
        return "\n".join([*map(str, self.path), self.sentence])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
