"""
Learn how far digits may be changed
===================================

Two classifiers see 100 digits that ship with scikit-learn: an ordinary Gaussian process, and one
that learns how far a digit may be turned, stretched, sheared and shifted. No validation set is
used; the test digits are looked at once, at the end.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from orbitgp import InvariantGPClassifier

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(
    digits.images, digits.target, train_size=100, random_state=0
)

# %%
# `fit` learns the ranges, the kernel and the noise by the evidence: the log probability of the
# training labels under the model. With 100 inputs it is computed exactly.

models = {}
for orbit in ("none", "affine"):
    models[orbit] = InvariantGPClassifier(orbit, random_state=0).fit(X_train, y_train)
    error = 100 * (1 - models[orbit].score(X_test, y_test))
    print(f"{orbit}: evidence {models[orbit].evidence_:.0f} nats, test error {error:.1f} %")

# %%
# What was learned, in words and as numbers:

learned = models["affine"].orbit_
print(learned.describe())
for own in learned.learned_ranges():
    print(f"{own.title}: {own.low:.3f} to {own.high:.3f}, identified: {own.identified}")

# %%
# Six digits, each followed by five random draws from its learned orbit. To the model, all pictures
# in a row are nearly the same.

images = torch.tensor(X_test[:6] / 16, dtype=torch.float32)
draws = learned.sample(images, 5, generator=torch.Generator().manual_seed(0)).points
figure, axes = plt.subplots(6, 6, figsize=(5, 5))
for row, image in enumerate(images):
    for column, picture in enumerate([image, *draws[row].detach()]):
        axes[row, column].imshow(picture, cmap="gray_r", vmin=0, vmax=1)
        axes[row, column].axis("off")
figure.tight_layout()

# %%
# Probabilities are calibrated on left-out training labels. The digits that the model is least sure
# of:

probabilities = models["affine"].predict_proba(X_test)
unsure = probabilities.max(1).argsort()[:5]
figure, axes = plt.subplots(1, 5, figsize=(7, 2))
for axis, place in zip(axes, unsure, strict=True):
    axis.imshow(X_test[place], cmap="gray_r")
    label, certainty = probabilities[place].argmax(), probabilities[place].max()
    axis.set_title(f"{label}? {100 * certainty:.0f} %")
    axis.axis("off")
figure.tight_layout()
