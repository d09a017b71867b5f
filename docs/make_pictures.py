"""The picture at the top of the README: digits, each followed by draws from its learned orbit.

python docs/make_pictures.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from orbitgp import InvariantGPClassifier

NUM_DIGITS, NUM_DRAWS = 4, 9


def main() -> None:
    """Fit as the README does, draw, and write the picture beside the documentation's others."""
    X, y = load_digits().images, load_digits().target
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=500, random_state=0)
    orbit = InvariantGPClassifier("affine", random_state=0).fit(X_train, y_train).orbit_
    rows = [int((y_test == digit).nonzero()[0][0]) for digit in (2, 3, 5, 7)]
    images = torch.tensor(X_test[rows] / 16, dtype=torch.float32)
    generator = torch.Generator().manual_seed(0)
    draws = orbit.sample(images, NUM_DRAWS, generator=generator).points.detach()
    figure, axes = plt.subplots(NUM_DIGITS, NUM_DRAWS + 1, figsize=(8, 3.3))
    for row, image in enumerate(images):
        for column, picture in enumerate([image, *draws[row]]):
            axis = axes[row, column]
            axis.imshow(picture, cmap="gray_r", vmin=0, vmax=1, interpolation="bicubic")
            axis.set(xticks=[], yticks=[])
            for side in axis.spines.values():
                side.set_color("tab:orange" if column == 0 else "none")
                side.set_linewidth(2)
    figure.tight_layout(pad=0.3)
    figure.savefig(Path(__file__).parent / "images" / "orbits.png", dpi=150)


if __name__ == "__main__":
    main()
