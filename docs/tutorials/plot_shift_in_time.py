"""
A transformation of your own: shifts in time
============================================

Sensors seldom start recording at the same moment. Here each series holds one bump, round or
pointed, at an unknown time. We write the shift as a function, and the model learns how far events
move.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from orbitgp import FunctionOrbit, InvariantGPClassifier

random = np.random.default_rng(0)
LENGTH = 60
time = np.arange(LENGTH)


def recorded(count):
    """Series [count, 60] whose bump stands up to 12 steps from the middle, and its kind."""
    labels = random.integers(2, size=count)
    distance = np.abs(time - 30 - random.uniform(-12, 12, (count, 1))) / 6
    bumps = np.where(labels[:, None], np.exp(-(distance**2)), np.clip(1 - distance, 0, None))
    return bumps + 0.1 * random.normal(size=bumps.shape), labels


X_train, y_train = recorded(80)
X_test, y_test = recorded(500)

# %%
# The function takes series [B, T] and parameters [B, 1], is the identity where they are 0, and uses
# torch operations, so that its range can be learned. Between two steps it interpolates.


def shifted(x, steps):
    """Series moved by some steps, with their ends held."""
    place = (torch.arange(x.shape[1], dtype=x.dtype) - steps).clamp(0, x.shape[1] - 1)
    below = place.detach().floor().long().clamp(max=x.shape[1] - 2)
    part = place - below
    return x.gather(1, below) * (1 - part) + x.gather(1, below + 1) * part


orbit = FunctionOrbit(shifted, -1.0, 1.0, names=["steps"])

# %%
# The range is found from any start: here it starts from ±1 step.

for name, candidate in (("none", "none"), ("shift", orbit)):
    model = InvariantGPClassifier(candidate, random_state=0).fit(X_train, y_train)
    error = 100 * (1 - model.score(X_test, y_test))
    print(f"{name}: evidence {model.evidence_:.0f} nats, test error {error:.1f} %")
print(model.orbit_.describe())

# %%
# One series with draws from its learned orbit.

series = torch.tensor(X_train[:1])
draws = model.orbit_.sample(series, 4, generator=torch.Generator().manual_seed(0)).points[0]
figure, axis = plt.subplots(figsize=(6, 3))
axis.plot(draws.detach().T, color="tab:gray", linewidth=1)
axis.plot(series[0], color="tab:blue", linewidth=2)
axis.set(xlabel="step", ylabel="signal")
figure.tight_layout()
