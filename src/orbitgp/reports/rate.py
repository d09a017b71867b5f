"""A share of some inputs, with its uncertainty."""

from dataclasses import dataclass

from orbitgp.reports.words import Ends, wilson


@dataclass(frozen=True)
class Rate:
    """So many of so many."""

    hits: int
    total: int

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.hits / self.total

    @property
    def interval(self) -> Ends:
        """That holds the true share with 95 %."""
        return wilson(self.hits, self.total)
