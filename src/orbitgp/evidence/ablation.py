"""What each transformation of a fitted model is worth."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from orbitgp.errors import FileError, InputError
from orbitgp.evidence.ranges import end_in_words, interval_in_words
from orbitgp.evidence.tables import data_frame
from orbitgp.fit.checks import IDENTIFIED
from orbitgp.orbits.ranges import Range, ranges_from
from orbitgp.sealed import MALFORMED, write_atomically

FILE, SCHEMA = "ablation.json", "orbitgp.ablation/1"
"""Where a run folder keeps an ablation, and the form of the file."""


@dataclass(frozen=True)
class Worth:
    """One transformation: its range, an interval of it, and what the evidence loses without it.

    Parameters
    ----------
    name : str
        Of a range, with its part if several have one of this name; of a fixed group in words.
    range : Range, optional
        The learned range; None for a fixed group.
    interval : tuple of float, optional
        The upper ends between which the evidence falls by at most 2 nats; None for a fixed group.
    removed, removed_error : float
        Nats that are lost without it, and the standard error.
    halved, doubled : float, optional
        Nats that are lost with half and with double the width; None for a fixed group.
    """

    name: str
    range: Range | None
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
        if not self.identified:
            return f"{self.name}: {self.removed_in_words}"
        worth = f"worth {self.removed_in_words}"
        if self.range is None or self.interval is None:
            return f"{self.name}, {worth}"
        return f"{self.name} {self.ends_in_words} ({self.interval_in_words}), {worth}"

    @property
    def removed_in_words(self) -> str:
        """ "412 ± 9 nats", "not identified", or "5 nats more without it"."""
        if self.removed <= -IDENTIFIED:
            return f"{-self.removed:,.0f} nats more without it"
        if not self.identified:
            return "not identified"
        return f"{self.removed:,.0f} ± {self.removed_error:.0f} nats"

    @property
    def ends_in_words(self) -> str:
        """ "±12°", or both ends if they are not alike; empty for a fixed group."""
        own = self.range
        if own is None:
            return ""
        if own.logarithmic or not math.isclose(-own.low, own.high, rel_tol=1e-3):
            return f"{end_in_words(own, own.low)} … {end_in_words(own, own.high)}"
        return f"±{end_in_words(own, own.high)}"

    @property
    def interval_in_words(self) -> str:
        """ "9° to 15°"; empty for a fixed group."""
        if self.range is None or self.interval is None:
            return ""
        return interval_in_words(self.range, *self.interval)


@dataclass(frozen=True)
class Ablation:
    """What `ablate` found.

    Parameters
    ----------
    worths : sequence of Worth
        One for each transformation, in the order of the orbit.
    num_data : int
        Inputs whose evidence was asked.
    kind : {"exact", "bound"}
        Of the evidence. For classes it is that of one-hot labels with Gaussian noise, whatever the
        likelihood of the model.

    Examples
    --------
    >>> from orbitgp import Ablation
    >>> Ablation([], 100).num_data
    100
    """

    worths: Sequence[Worth]
    num_data: int
    kind: Literal["exact", "bound"] = "exact"

    def __getitem__(self, name: str) -> Worth:
        """The transformation of this name."""
        for worth in self.worths:
            if worth.name == name:
                return worth
        names = ", ".join(worth.name for worth in self.worths)
        raise InputError(f"no transformation is called {name!r}; there are {names or 'none'}")

    def records(self) -> list[dict[str, Any]]:
        """One dictionary for each transformation, as JSON can hold it."""
        return [asdict(worth) | {"identified": worth.identified} for worth in self.worths]

    def frame(self) -> Any:
        """The same as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns unit, low, high, interval_low, interval_high, removed, removed_error, halved,
            doubled and identified, one row for each transformation.
        """
        rows = []
        for worth, record in zip(self.worths, self.records(), strict=True):
            own = worth.range or Range("", "", 0, math.nan, math.nan)
            from_, to = worth.interval or (math.nan, math.nan)
            ends = {"unit": own.unit, "low": own.low, "high": own.high}
            ends |= {"interval_low": from_, "interval_high": to}
            rest = {name: record[name] for name in record if name not in ("range", "interval")}
            rows.append({"name": worth.name, **ends, **rest})
        return data_frame(rows, index="name")

    def __str__(self) -> str:
        """A sentence for each transformation."""
        return "; ".join(map(str, self.worths)) or "no invariance"


def write_ablation(found: Ablation, run: Path) -> None:
    """Keep it in the folder of a run."""
    kept = {"schema": SCHEMA, **asdict(found)}
    write_atomically(run / FILE, json.dumps(kept, indent=2, ensure_ascii=False).encode())


def read_ablation(path: Path) -> Ablation:
    """What `write_ablation` kept."""
    try:
        found = json.loads(path.read_bytes())
        if found["schema"] != SCHEMA or found["kind"] not in ("exact", "bound"):
            raise ValueError(f"{found['schema']!r:.40}, {found['kind']!r:.40}")
        worths, num_data = [worth_from(worth) for worth in found["worths"]], int(found["num_data"])
        if not 0 < num_data < 2**53:
            raise ValueError(f"{num_data!r:.40} inputs")
        return Ablation(worths, num_data, found["kind"])
    except (OSError, *MALFORMED) as error:
        raise FileError(
            f"{path} cannot be read ({type(error).__name__}: {error}); delete it, or ask for it "
            "again with orbitgp ablate"
        ) from None


def worth_from(found: Mapping[str, Any]) -> Worth:
    """What JSON holds of one."""
    if found.keys() != {field.name for field in fields(Worth)}:
        raise ValueError(f"keys {sorted(found)}")
    (own,) = (None,) if found["range"] is None else ranges_from([found["range"]])
    pair = found["interval"]
    interval = None if pair is None else (float(pair[0]), float(pair[1]))
    removed, error = float(found["removed"]), float(found["removed_error"])
    moved = [found[name] for name in ("halved", "doubled")]
    halved, doubled = (None if value is None else float(value) for value in moved)
    return Worth(str(found["name"]), own, interval, removed, error, halved, doubled)
