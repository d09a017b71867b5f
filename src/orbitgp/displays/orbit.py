"""Inputs, and draws from their learned orbits."""

from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from orbitgp.displays.axes import axes_for
from orbitgp.evidence.tables import data_frame
from orbitgp.orbits.ranges import Range


class OrbitDisplay:
    """Inputs in the first column, each followed by draws from its orbit.

    Parameters
    ----------
    inputs : ndarray of shape (n, H, W), (n, C, H, W) or (n, T)
        Inputs as the model sees them.
    draws : ndarray of shape (n, s, ...)
        Draws from the orbit of each.
    ranges : tuple of Range
        The learned ranges.
    description : str
        What was learned, in words.

    See Also
    --------
    RangeDisplay : The ranges with their intervals.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbitgp import InvariantGPClassifier, OrbitDisplay
    >>> digits = load_digits()
    >>> X, y = digits.images[:60], digits.target[:60]
    >>> model = InvariantGPClassifier("mirror", random_state=0).fit(X, y)
    >>> OrbitDisplay.from_estimator(model, X[:3], num_draws=2).draws.shape
    (3, 2, 8, 8)
    """

    def __init__(
        self,
        *,
        inputs: np.ndarray,
        draws: np.ndarray,
        ranges: tuple[Range, ...],
        description: str,
    ) -> None:
        self.inputs, self.draws = inputs, draws
        self.ranges, self.description = ranges, description

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, num_draws: int = 8, random_state: int = 0
    ) -> "OrbitDisplay":
        """Draw from the orbit of a fitted estimator.

        Parameters
        ----------
        estimator : InvariantGPClassifier or InvariantGPRegressor
            A fitted estimator.
        X : array-like
            A few inputs like those of its fit.
        num_draws : int, default=8
            Draws for each input.
        random_state : int, default=0
            Seed of the draws.

        Returns
        -------
        OrbitDisplay
            Not drawn yet: call `plot`.
        """
        x, orbit = estimator.as_inputs(X), estimator.orbit_
        generator = torch.Generator().manual_seed(random_state)
        count = int(min(num_draws, orbit.size))
        with torch.no_grad():
            draws = orbit.sample(x, count, generator=generator).points
        return cls(
            inputs=x.cpu().numpy(),
            draws=draws.cpu().numpy(),
            ranges=orbit.learned_ranges(),
            description=orbit.describe(),
        )

    def plot(self, ax: Any = None) -> "OrbitDisplay":
        """Draw a row for each input.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if not given.

        Returns
        -------
        OrbitDisplay
            With `ax_` and `figure_`.
        """
        rows, columns = len(self.inputs), 1 + self.draws.shape[1]
        self.ax_ = axes_for(ax, (0.8 * columns, 0.8 * rows + 0.4))
        self.figure_ = self.ax_.figure
        if self.inputs.ndim == 2:
            self._plot_series()
        else:
            self._plot_images(rows, columns)
        self.ax_.set_title(self.description, fontsize="small", wrap=True)
        return self

    def _plot_images(self, rows: int, columns: int) -> None:
        everything = np.concatenate([self.inputs[:, None], self.draws], 1)
        if everything.ndim == 5:  # channels last, as matplotlib wants them; one or three of them
            everything = np.moveaxis(everything, 2, -1)
            if everything.shape[-1] != 3:
                everything = everything.mean(-1)
        height, width = everything.shape[2:4]
        sheet = np.swapaxes(everything, 1, 2).reshape(
            rows * height, columns * width, *everything.shape[4:]
        )
        self.ax_.imshow(np.clip(sheet, 0, None), cmap="gray_r")
        self.ax_.axvline(width - 0.5, color="tab:blue", linewidth=2)
        self.ax_.set_xticks([])
        self.ax_.set_yticks([])

    def _plot_series(self) -> None:
        for row, (one, several) in enumerate(zip(self.inputs, self.draws, strict=True)):
            offset = -row * 1.2 * np.ptp(self.inputs)
            self.ax_.plot(several.T + offset, color="tab:gray", alpha=0.4, linewidth=0.8)
            self.ax_.plot(one + offset, color="tab:blue")
        self.ax_.set_yticks([])

    def frame(self) -> Any:
        """The ends of the learned ranges as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns unit, part, low, high, identified and logarithmic, one row for each range.
        """
        return data_frame(list(map(asdict, self.ranges)), index="name")
