"""What each transformation is worth, and the interval of its range."""

from typing import Any

from orbitgp.displays.axes import axes_for
from orbitgp.evidence.ablate import ablate
from orbitgp.evidence.ablation import Ablation, Worth
from orbitgp.evidence.ranges import end_in_words, interval_in_words


class RangeDisplay:
    """Nats that are lost without each transformation, with its range beside the bar.

    Parameters
    ----------
    ablation : Ablation
        What each transformation is worth.

    See Also
    --------
    ablate : Where the values come from.

    Examples
    --------
    >>> from orbitgp import Ablation, RangeDisplay
    >>> RangeDisplay(ablation=Ablation([], 100)).ablation.num_data
    100
    """

    def __init__(self, *, ablation: Ablation) -> None:
        self.ablation = ablation

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "RangeDisplay":
        """Ask a fitted estimator.

        Parameters
        ----------
        estimator : InvariantGPClassifier or InvariantGPRegressor
            A fitted estimator.
        X, y : array-like
            The data that it was fitted to.
        **options : object
            Passed to `ablate`.

        Returns
        -------
        RangeDisplay
            Not drawn yet: call `plot`.
        """
        return cls(ablation=ablate(estimator, X, y, **options))

    def plot(self, ax: Any = None) -> "RangeDisplay":
        """Draw a bar for each transformation, with two standard errors.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if not given.

        Returns
        -------
        RangeDisplay
            With `ax_` and `figure_`.
        """
        worths = self.ablation.worths
        self.ax_ = axes_for(ax, (6.4, 1 + 0.4 * len(worths)))
        self.figure_ = self.ax_.figure
        lost = [worth.removed for worth in worths]
        twice = [2 * worth.removed_error for worth in worths]
        colours = ["tab:blue" if worth.identified else "tab:gray" for worth in worths]
        labels = [_label(worth) for worth in worths]
        self.ax_.barh(labels, lost, xerr=twice, color=colours, capsize=3)
        self.ax_.axvline(0, color="black", linewidth=0.8)
        self.ax_.invert_yaxis()
        inputs = f"{self.ablation.num_data:,} inputs, {self.ablation.kind}"
        self.ax_.set(xlabel=f"evidence lost without it (nats, {inputs})")
        return self

    def frame(self) -> Any:
        """What each transformation is worth as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            That of the ablation.
        """
        return self.ablation.frame()


def _label(worth: Worth) -> str:
    if worth.interval is None or worth.range is None:
        return worth.name
    if not worth.identified:
        return f"{worth.name}\nnot identified"
    shown = end_in_words(worth.range, worth.range.high)
    return f"{worth.name} {shown}\n({interval_in_words(worth.range, *worth.interval)})"
