"""
Is this function symmetric?
===========================

A function of two inputs does not change when they are exchanged. Can a model find that out from 60
noisy values? This is the example of Figure 2 of the paper, with the regressor.
"""

import matplotlib.pyplot as plt
import numpy as np

from orbitgp import InvariantGPRegressor, coordinate_swap


def truth(X):
    """The same for (a, b) and (b, a)."""
    return np.sin(2 * X).prod(1) + np.cos(X.sum(1))


random = np.random.default_rng(0)
X = random.uniform(-2, 2, (60, 2))
y = truth(X) + 0.1 * random.normal(size=60)

# %%
# `coordinate_swap(0, 1, 2)` exchanges positions 0 and 1 of vectors of length 2. The evidence of the
# two models is exact, and for regression its difference is a log Bayes factor.

models = {
    "no symmetry": InvariantGPRegressor("none", random_state=0).fit(X, y),
    "symmetric": InvariantGPRegressor(coordinate_swap(0, 1, 2), random_state=0).fit(X, y),
}
for name, model in models.items():
    print(f"{name}: evidence {model.evidence_:.1f} nats")

# %%
# The symmetric model also predicts better where there were no data, and knows where it is unsure.

grid = np.linspace(-2, 2, 41)
places = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
axes[0].contourf(grid, grid, truth(places).reshape(41, 41), levels=12)
axes[0].set_title("the function")
for axis, (name, model) in zip(axes[1:], models.items(), strict=True):
    mean, deviation = model.predict(places, return_std=True)
    error = np.sqrt(np.mean((mean - truth(places)) ** 2))
    axis.contourf(grid, grid, mean.reshape(41, 41), levels=12)
    axis.plot(*X.T, "k.", markersize=3)
    axis.set_title(f"{name}: RMSE {error:.2f}")
    print(f"{name}: mean standard deviation {deviation.mean():.2f}, RMSE {error:.2f}")
figure.tight_layout()
