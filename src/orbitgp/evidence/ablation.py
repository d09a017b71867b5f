"""What each transformation of a fitted model is worth."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orbitgp.errors import InputError
from orbitgp.evidence.ranges import end_in_words, interval_in_words, split_unit
from orbitgp.evidence.tables import data_frame
from orbitgp.fit.checks import IDENTIFIED


@dataclass(frozen=True)
class Worth:
    """One transformation: its range, an interval of it, and what the evidence loses without it.

    Parameters
    ----------
    name : str
        With the unit of the ends.
    ends : tuple of float, optional
        Both ends of a learned range; None for a fixed group.
    interval : tuple of float, optional
        The upper ends between which the evidence falls by at most 2 nats; None for a fixed group.
    removed, removed_error : float
        Nats that are lost without it, and the standard error.
    halved, doubled : float, optional
        Nats that are lost with half and with double the width; None for a fixed group.
    """

    name: str
    ends: tuple[float, float] | None
    interval: tuple[float, float] | None
    removed: float
    removed_error: float
    halved: float | None = None
    doubled: float | None = None

    @property
    def identified(self) -> bool:
        """Whether the evidence falls by 2 nats or more without it."""
        return self.removed >= IDENTIFIED

    def __str__(self) -> str:
        """One sentence: "rotation ±12° (9° to 15°), worth 412 ± 9 nats"."""
        words, unit = split_unit(self.name)
        if self.removed <= -IDENTIFIED:
            return f"{words}: {-self.removed:,.0f} nats more without it"
        if not self.identified:
            return f"{words}: not identified"
        worth = f"worth {self.removed:,.0f} ± {self.removed_error:.0f} nats"
        if self.ends is None or self.interval is None:
            return f"{words}, {worth}"
        low, high = self.ends
        shown = f"±{end_in_words(high, unit)}"
        if unit == "×" or not math.isclose(-low, high, rel_tol=1e-3):
            shown = f"{end_in_words(low, unit)} … {end_in_words(high, unit)}"
        between = interval_in_words(*self.interval, unit)
        return f"{words} {shown} ({between}), {worth}"


@dataclass(frozen=True)
class Ablation:
    """What `ablate` found.

    Parameters
    ----------
    worths : sequence of Worth
        One for each transformation, in the order of the orbit.
    num_data : int
        Inputs whose evidence was asked.
    kind : str
        Of the evidence: "exact".

    Examples
    --------
    >>> from orbitgp import Ablation
    >>> Ablation([], 100).num_data
    100
    """

    worths: Sequence[Worth]
    num_data: int
    kind: str = "exact"

    def __getitem__(self, name: str) -> Worth:
        """The transformation of this name, with or without its unit."""
        for worth in self.worths:
            if name in (worth.name, split_unit(worth.name)[0]):
                return worth
        names = ", ".join(split_unit(worth.name)[0] for worth in self.worths)
        raise InputError(f"no transformation is called {name!r}; there are {names or 'none'}")

    def records(self) -> list[dict[str, Any]]:
        """One dictionary for each transformation, as JSON can hold it."""
        return [asdict(worth) | {"identified": worth.identified} for worth in self.worths]

    def frame(self) -> Any:
        """The same as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns low, high, interval_low, interval_high, removed, removed_error, halved, doubled
            and identified, one row for each transformation.
        """
        rows = []
        for record in self.records():
            low, high = record.pop("ends") or (math.nan, math.nan)
            from_, to = record.pop("interval") or (math.nan, math.nan)
            ends = {"low": low, "high": high, "interval_low": from_, "interval_high": to}
            rows.append({"name": record.pop("name"), **ends, **record})
        return data_frame(rows, index="name")

    def __str__(self) -> str:
        """A sentence for each transformation."""
        return "; ".join(map(str, self.worths)) or "no invariance"
