"""Whether probabilities are right on average."""

from typing import Any

import numpy as np

from orbitgp.displays.axes import axes_for
from orbitgp.evidence.tables import data_frame
from orbitgp.scores import calibration_bins, evaluate


class CalibrationDisplay:
    """How often predictions are right, beside how sure they were.

    Parameters
    ----------
    confidence, accuracy, error : ndarray of shape (bins,)
        Of each bin the mean probability of the predicted class, the fraction that was right, and
        its standard error.
    count : ndarray of shape (bins,)
        Inputs of each bin.
    ece : float
        Expected calibration error.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbitgp import CalibrationDisplay, InvariantGPClassifier
    >>> digits = load_digits()
    >>> X, y = digits.images[:180], digits.target[:180]
    >>> model = InvariantGPClassifier(random_state=0).fit(X[:80], y[:80])
    >>> found = CalibrationDisplay.from_estimator(model, X[80:], y[80:])
    >>> int(found.count.sum())
    100
    """

    def __init__(
        self,
        *,
        confidence: np.ndarray,
        accuracy: np.ndarray,
        error: np.ndarray,
        count: np.ndarray,
        ece: float,
    ) -> None:
        self.confidence, self.accuracy, self.error = confidence, accuracy, error
        self.count, self.ece = count, ece

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any) -> "CalibrationDisplay":
        """Predict labelled inputs that the fit has not seen.

        Parameters
        ----------
        estimator : InvariantGPClassifier
            A fitted classifier.
        X, y : array-like
            Inputs and labels of a test.

        Returns
        -------
        CalibrationDisplay
            Not drawn yet: call `plot`.
        """
        result = evaluate(estimator, X, y)
        right = result.predictions == result.labels
        bins = calibration_bins(result.uncertainty.max(1), right)
        count, sure, hits = (values[bins[0] > 0] for values in bins)
        accuracy = hits / count
        # one more of either kind, so that a bin without mistakes has an error, too
        smoothed = (hits + 1) / (count + 2)
        return cls(
            confidence=sure / count,
            accuracy=accuracy,
            error=np.sqrt(smoothed * (1 - smoothed) / count),
            count=count,
            ece=result.metrics["ece"],
        )

    def plot(self, ax: Any = None) -> "CalibrationDisplay":
        """Draw the bins with two standard errors.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if not given.

        Returns
        -------
        CalibrationDisplay
            With `ax_` and `figure_`.
        """
        self.ax_ = axes_for(ax, (4.4, 4.4))
        self.figure_ = self.ax_.figure
        self.ax_.plot([0, 1], [0, 1], color="tab:gray", linestyle="--", label="perfect")
        label = f"ECE {self.ece:.3f}, {int(self.count.sum()):,} inputs"
        self.ax_.errorbar(
            self.confidence, self.accuracy, yerr=2 * self.error, marker="o", capsize=3, label=label
        )
        self.ax_.set(xlabel="probability of the predicted class", ylabel="fraction that was right")
        self.ax_.set(xlim=(0, 1.02), ylim=(0, 1.02))
        self.ax_.legend(loc="lower right")
        return self

    def frame(self) -> Any:
        """The bins as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns confidence, accuracy, error and count, one row for each bin.
        """
        columns = ("confidence", "accuracy", "error", "count")
        bins = zip(*(getattr(self, name).tolist() for name in columns), strict=True)
        rows = [{"bin": k, **dict(zip(columns, own, strict=True))} for k, own in enumerate(bins)]
        return data_frame(rows, index="bin")
