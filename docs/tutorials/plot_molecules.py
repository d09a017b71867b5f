"""
Energies of small molecules
===========================

The energy of a molecule does not change when it is turned, moved, or when its atoms are listed in
another order. A model of energies may learn that from data, or be given it by its features, or
both. The evidence says how much each is worth.

The molecules are simulated: five charged atoms at random places, whose energy is that of a pair
potential, so all three symmetries hold exactly. For molecules of your own, replace `X` by
an array [n, atoms, 4] of positions and charges, with rows of zeros where a molecule has fewer
atoms, and `energy` by what you measured or computed.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from orbitgp import (
    InvariantGPRegressor,
    PointRotation,
    RandomOrder,
    TrainingSettings,
    Translation,
    compose,
)

random = np.random.default_rng(0)
ATOMS = 5
first, second = np.triu_indices(ATOMS, 1)


def molecule():
    """Positions (Å) of atoms that do not overlap, and their charges (e)."""
    while True:
        positions = random.uniform(-1.6, 1.6, (ATOMS, 3))
        if np.linalg.norm(positions[first] - positions[second], axis=1).min() > 1:
            centre = random.uniform(-0.5, 0.5, 3)
            return np.column_stack([positions + centre, random.choice([-1, 1], ATOMS)])


X = np.stack([molecule() for _ in range(900)])
distance = np.linalg.norm(X[:, first, :3] - X[:, second, :3], axis=2)
charges = X[:, first, 3] * X[:, second, 3]
energy = 14.4 * (charges / distance + 0.6 / distance**6).sum(1)  # eV
X_train, y_train, X_test, y_test = X[:200], energy[:200], X[200:], energy[200:]

# %%
# Features are any torch module. These are functions of the distances between atoms, like the
# entries of a Coulomb matrix: they stay the same if a molecule is turned or moved, but change with
# the order of its atoms.


class Pairs(torch.nn.Module):
    """1/r and qq'/r of all pairs of atoms, from molecules [B, atoms, 4]."""

    def forward(self, x):
        """Features [B, 2 · pairs]."""
        one, other = torch.triu_indices(x.shape[1], x.shape[1], 1)
        inverse = 1 / (x[:, one, :3] - x[:, other, :3]).norm(dim=2)
        return torch.cat([inverse, x[:, one, 3] * x[:, other, 3] * inverse], 1)


# %%
# `RandomOrder` averages over random orders, as in randomly sorted Coulomb matrices (Montavon et al.
# 2012). Rotation and translation are learned from small ranges. Small `settings` make the fits
# short.

moved = compose(Translation(), PointRotation())
positions, pairs = torch.nn.Flatten(), Pairs()
candidates = {
    "positions": {"orbit": "none", "feature_map": positions},
    "positions, rotation": {"orbit": "rotation-3d", "feature_map": positions},
    "positions, translation, rotation": {"orbit": moved, "feature_map": positions},
    "distances": {"orbit": "none", "feature_map": pairs},
    "distances, any order": {"orbit": RandomOrder(ATOMS), "feature_map": pairs},
}
quick = TrainingSettings(max_steps=8, scan_size=80, climb_size=80, climb_draws=16, search_size=60)
results = {}
for name, parts in candidates.items():
    model = InvariantGPRegressor(**parts, settings=quick, random_state=0).fit(X_train, y_train)
    mean, deviation = model.predict(X_test, return_std=True)
    mae = np.abs(mean - y_test).mean()
    covered = np.mean(np.abs(mean - y_test) < 1.96 * deviation)
    results[name] = mean, deviation, mae
    print(
        f"{name}: evidence {model.evidence_:.0f} nats, error {mae:.2f} eV, "
        f"95 % intervals hold {100 * covered:.0f} %"
    )
    print(f"    {model.orbit_.describe()}")

# %%
# The rotation has become any rotation, and the errors of the positions have fallen; but their
# distances, which have that invariance exactly, are far better features. To leave the order of the
# atoms out as well is worth many nats more, and makes the error smaller again. The translation is
# small beside the molecules, and hardly matters to these data: its ranges are not identified.
#
# The intervals are honest: about 95 % of test energies lie within theirs.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), sharex=True, sharey=True, layout="constrained")
for axis, name in zip(
    axes, ("positions", "positions, rotation", "distances, any order"), strict=True
):
    mean, deviation, mae = results[name]
    axis.plot(*2 * [[energy.min(), energy.max()]], color="0.6", linewidth=1)
    axis.errorbar(
        y_test[:100],
        mean[:100],
        1.96 * deviation[:100],
        fmt="o",
        markersize=3,
        linewidth=0.8,
        color="tab:blue",
    )
    axis.set(xlabel="energy (eV)", title=f"{name}\nmean error {mae:.1f} eV")
axes[0].set_ylabel("predicted energy, 95 % interval (eV)")
