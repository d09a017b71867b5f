"""
Infected cells, patient by patient
==================================

Is there a parasite in this red blood cell? It may lie at any angle, a cell may lie either side up
on the slide, and every patient's slide is stained a little differently. The images below are
simulated, so that we know the right answer: turned and mirrored cells have the same label. For
images of your own, replace `X` by an array [n, height, width], `y` by their labels and `patient` by
whom each comes from.
"""

import joblib
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.model_selection import GroupShuffleSplit

from orbitgp import (
    CalibrationDisplay,
    InvariantGPClassifier,
    Mirror,
    OrientedEnergy,
    Rotation,
    TrainingSettings,
    compare,
    compose,
)

random = np.random.default_rng(0)
SIZE = 20
across, down = np.meshgrid(*[np.arange(SIZE) - (SIZE - 1) / 2] * 2)


def spot(x, y, length, width, angle):
    """An elongated spot of stain."""
    along = (across - x) * np.cos(angle) + (down - y) * np.sin(angle)
    beside = (down - y) * np.cos(angle) - (across - x) * np.sin(angle)
    return np.exp(-((along / length) ** 2) - (beside / width) ** 2)


def cell(infected, stain):
    """A round cell with a long parasite, or with a round grain of dye."""
    image = 0.4 / (1 + np.exp(2 * (np.hypot(across, down) - random.uniform(7, 8.5))))
    place, angle = random.uniform(0, 2 * np.pi, 2)
    length, width = (3.2, 1.2) if infected else (2, 1.9)
    away = random.uniform(0, 4)
    image += 0.6 * spot(away * np.cos(place), away * np.sin(place), length, width, angle)
    return stain * image + 0.06 * random.normal(size=image.shape)


patient = np.repeat(np.arange(24), 20)
stain = random.uniform(0.6, 1.4, 24)
infected = random.integers(2, size=len(patient))
X = np.stack([cell(*one) for one in zip(infected, stain[patient], strict=True)])
y = np.where(infected, "infected", "healthy")

# %%
# Cells of one patient resemble each other, so a patient is either trained on or tested on. Here
# six patients are labelled, and eighteen show how well that serves others.

splitter = GroupShuffleSplit(n_splits=1, train_size=6, random_state=0)
train, test = next(splitter.split(X, y, groups=patient))

# %%
# Four candidates are compared by their evidence, the log probability of the training labels. No
# test cell has a part in that. `OrientedEnergy` compares edges relative to their surroundings
# instead of pixels, so the strength of the stain matters little; small `settings` make the fits
# short.

quick = TrainingSettings(max_steps=8, scan_size=100, climb_size=100, climb_draws=16, search_size=60)
edges = OrientedEnergy(cells=(8,))
classifier = InvariantGPClassifier(feature_map=edges, settings=quick, random_state=0)
candidates = {
    "no invariance": "none",
    "mirror": "mirror",
    "rotation": "rotation",
    "rotation and mirror": compose(Rotation(-0.2, 0.2), Mirror()),
}
one_by_one = joblib.Parallel(n_jobs=1)
found = compare(candidates, X[train], y[train], estimator=classifier, executor=one_by_one)
print(found)

# %%
# The winner against the classifier without an invariance, on patients that neither has seen:

best = found.best_estimator
plain = classifier.fit(X[train], y[train])
for name, model in (("no invariance", plain), (found.best.name, best)):
    error = 100 * (1 - model.score(X[test], y[test]))
    print(f"{name}: evidence {model.evidence_:.0f} nats, test error {error:.1f} %")

# %%
# Six test cells, each followed by draws from its learned orbit: to the model, all pictures in a row
# are nearly the same.

cells = torch.tensor(X[test[::60]], dtype=torch.float32)
draws = best.orbit_.sample(cells, 6, generator=torch.Generator().manual_seed(0)).points.detach()
figure, axes = plt.subplots(6, 7, figsize=(6, 5.4), layout="constrained")
for row, image, label in zip(range(6), cells, y[test[::60]], strict=True):
    for axis, picture in zip(axes[row], [image, *draws[row]], strict=True):
        axis.imshow(picture, cmap="gray", vmin=0, vmax=float(image.max()))
        axis.set(xticks=[], yticks=[])
    axes[row, 0].set_ylabel(label)
axes[0, 0].set_title("cell")
axes[0, 3].set_title("draws from its orbit")

# %%
# Probabilities are calibrated on left-out training cells: of the predictions that are said to be
# right with a probability of 80 %, about 80 % should be. Bars are two standard errors: they are
# long where few cells have such a probability, since most are clear.

CalibrationDisplay.from_estimator(best, X[test], y[test]).plot()
