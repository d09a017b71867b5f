"""Confusions of classes."""

from dataclasses import dataclass

import numpy as np

from orbitgp.scores import TestResult


@dataclass(frozen=True)
class Cell:
    """How often one class was taken for another; `shade` from 0 to 1 by the share of the class."""

    count: int
    shade: float
    right: bool

    @property
    def style(self) -> str:
        """A class of the style sheet."""
        if not self.count:
            return "none"
        return ("right" if self.right else "wrong") + (" strong" if self.shade > 0.72 else "")


@dataclass(frozen=True)
class Matrix:
    """A heat map that is a table: true classes in rows, predicted ones in columns."""

    classes: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def confusion_counts(test: TestResult) -> np.ndarray:
    """How often each true class, in rows, was taken for each other, in columns."""
    many = len(test.classes)
    return np.bincount(test.labels * many + test.predictions, minlength=many**2).reshape(many, many)


def confusion_matrix(counts: np.ndarray, classes: tuple[str, ...]) -> Matrix:
    """Coloured by the share of the true class."""
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    wrong = share - np.diag(np.diag(share))
    shades = np.sqrt(wrong / max(float(wrong.max()), 1e-12)) * 0.85
    np.fill_diagonal(shades, np.diag(share) * 0.9)
    rows = (
        tuple(Cell(*pair, i == j) for j, pair in enumerate(zip(row, shade, strict=True)))
        for i, (row, shade) in enumerate(zip(counts.tolist(), shades.tolist(), strict=True))
    )
    return Matrix(classes, tuple(rows))
