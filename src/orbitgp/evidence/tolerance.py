"""How far inputs may be changed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orbitgp.evidence.tables import text_table
from orbitgp.orbits.base import Orbit


@dataclass(frozen=True)
class Change:
    """One transformation with one width.

    Parameters
    ----------
    name : str
        Of the transformation.
    width : float
        In radians, logarithms of factors or half-widths, as `Transformation` has it.
    words : str
        The same in people's units.
    loss : float
        Of changed inputs: the share whose labels are predicted wrongly; for numbers, the mean
        squared error in units of their variance.
    error : float
        Standard error of the difference between this loss and that of inputs as they are.
    tolerated : bool
        Whether the difference is small enough.
    """

    name: str
    width: float
    words: str
    loss: float
    error: float
    tolerated: bool


@dataclass(frozen=True)
class Tolerance:
    """The widest changes of inputs that leave their labels as they are, as far as data show.

    Made by `tolerated`.

    Parameters
    ----------
    orbit : Orbit
        All changes that are tolerated, one after the other.
    changes : sequence of Change
        What was tried.
    loss : float
        Of inputs as they are.
    limit : float
        By how much the loss of changed inputs may exceed it.
    num_inputs : int
        Inputs that were changed.

    See Also
    --------
    tolerated : Makes one.
    export_policy : Writes its orbit as an augmentation.

    Examples
    --------
    >>> from orbitgp import Identity, Tolerance
    >>> Tolerance(Identity(), [], 0.02, 0.01, 500).names
    []
    """

    orbit: Orbit
    changes: Sequence[Change]
    loss: float
    limit: float
    num_inputs: int

    @property
    def names(self) -> list[str]:
        """The transformations that are tolerated."""
        return [change.name for change in self.changes if change.tolerated]

    def records(self) -> list[dict[str, Any]]:
        """One dictionary for each change, as JSON can hold it."""
        return [asdict(change) for change in self.changes]

    def __str__(self) -> str:
        """A table, and what is tolerated."""
        rows = [
            [
                change.name,
                change.words,
                f"{change.loss:.3f}",
                f"{change.loss - self.loss:+.3f} ± {change.error:.3f}".replace("-", "−"),
                "yes" if change.tolerated else "no",
            ]
            for change in self.changes
        ]
        table = text_table(["change", "up to", "loss", "rise", "tolerated"], rows)
        return f"{table}\n{self.orbit.describe()}"
