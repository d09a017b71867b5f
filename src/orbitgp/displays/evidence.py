"""Evidence of candidates, with error bars."""

from collections.abc import Mapping, Sequence
from typing import Any

from orbitgp.displays.axes import axes_for
from orbitgp.evidence.compare import compare
from orbitgp.evidence.tables import data_frame


class EvidenceDisplay:
    """Differences in evidence to the best candidate, and how they grow with the data.

    Parameters
    ----------
    names : sequence of str
        The candidates, the best first.
    differences, errors : sequence of float
        To the best, in nats, with standard errors.
    by_size : mapping of str to mapping of int to float
        The same differences for parts of the data.
    kind : str
        "exact" or "bound".

    See Also
    --------
    compare : Where candidates are ranked.

    Examples
    --------
    >>> from orbitgp import EvidenceDisplay
    >>> sizes = {"affine": {250: 0.0, 500: 0.0}, "none": {250: -30.0, 500: -80.0}}
    >>> names = ["affine", "none"]
    >>> display = EvidenceDisplay(
    ...     names=names, differences=[0, -80], errors=[0, 3], by_size=sizes, kind="exact"
    ... )
    >>> display.kind
    'exact'
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        differences: Sequence[float],
        errors: Sequence[float],
        by_size: Mapping[str, Mapping[int, float]],
        kind: str,
    ) -> None:
        self.names, self.differences, self.errors = list(names), list(differences), list(errors)
        self.by_size, self.kind = by_size, kind

    @classmethod
    def from_comparison(cls, comparison: Any) -> "EvidenceDisplay":
        """Take what `compare` found.

        Parameters
        ----------
        comparison : Comparison
            The ranked candidates.

        Returns
        -------
        EvidenceDisplay
            Not drawn yet: call `plot`.
        """
        names = [finding.name for finding in comparison.findings]
        gaps = [comparison.difference(name) for name in names]
        kinds = sorted({finding.kind for finding in comparison.findings})
        return cls(
            names=names,
            differences=[gap for gap, _ in gaps],
            errors=[error for _, error in gaps],
            by_size=comparison.by_size(),
            kind=" and ".join(kinds),
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, candidates: Any, **options: Any
    ) -> "EvidenceDisplay":
        """Compare candidates, and take what was found.

        Parameters
        ----------
        estimator : InvariantGPClassifier or InvariantGPRegressor
            Has all parameters that the candidates do not.
        X, y : array-like
            The data.
        candidates : mapping or sequence
            As those of `compare`.
        **options : object
            Passed to `compare`.

        Returns
        -------
        EvidenceDisplay
            Not drawn yet: call `plot`.
        """
        return cls.from_comparison(compare(candidates, X, y, estimator=estimator, **options))

    def plot(self, ax: Any = None, *, by_size: bool = False) -> "EvidenceDisplay":
        """Draw bars with two standard errors, or lines over the number of inputs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if not given.
        by_size : bool, default=False
            Whether to draw differences for parts of the data.

        Returns
        -------
        EvidenceDisplay
            With `ax_` and `figure_`.
        """
        self.ax_ = axes_for(ax, (6.4, 1 + 0.4 * len(self.names)))
        self.figure_ = self.ax_.figure
        label = f"evidence less that of {self.names[0]} (nats, {self.kind})"
        if by_size:
            for name in self.names:
                sizes = self.by_size[name]
                self.ax_.plot(list(sizes), list(sizes.values()), marker="o", label=name)
            self.ax_.set(xlabel="inputs", ylabel=label, xscale="log")
            self.ax_.legend()
        else:
            twice = [2 * error for error in self.errors]
            self.ax_.barh(self.names, self.differences, xerr=twice, color="tab:blue", capsize=3)
            self.ax_.invert_yaxis()
            self.ax_.set(xlabel=label)
        return self

    def frame(self) -> Any:
        """The differences as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns difference and error, one row for each candidate.
        """
        rows = [
            {"name": name, "difference": gap, "error": error}
            for name, gap, error in zip(self.names, self.differences, self.errors, strict=True)
        ]
        return data_frame(rows, index="name")
