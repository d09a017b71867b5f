"""
Your own transformation, from check to export
=============================================

An infrared spectrum shows how much of a substance a sample holds, but also how thick the sample is
and how much light is scattered. Chemists correct spectra for both by hand. Here we write the two
changes as a function, and the model learns from 40 spectra how far they go.

The spectra are simulated, because then the right answer is known. For spectra of your own, replace
`X_train` by an array [n, wavenumbers] and `y_train` by the percentages.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import orbitgp
from orbitgp import FunctionOrbit, InvariantGPRegressor, check_orbit

random = np.random.default_rng(0)
wavenumber = np.linspace(1000, 1600, 60)


def band(centre, width):
    """A band of absorption."""
    return np.exp(-(((wavenumber - centre) / width) ** 2))


def measured(count):
    """Spectra [count, 60] of samples of unknown thickness, and percentages of the substance."""
    percent, impurity = random.uniform(0, 10, (count, 1)), random.uniform(0, 0.3, (count, 1))
    spectra = band(1150, 60) + 0.1 * percent * band(1300, 40) + impurity * band(1380, 70)
    thickness = np.exp(random.uniform(-0.7, 0.7, (count, 1)))
    spectra = thickness * spectra + random.uniform(-0.2, 0.2, (count, 1))
    return spectra + 0.01 * random.normal(size=spectra.shape), percent[:, 0]


X_train, y_train = measured(40)
X_test, y_test = measured(500)

# %%
# A transformation takes inputs [B, 60] and parameters [B, 2] and consists of torch operations. It
# must be the identity where the parameters are 0. Multiplying by the thickness itself is not, and
# `check_orbit` says so:


def wrong(x, change):
    """Spectra times 0 where nothing should change."""
    return x * change[:, :1] + change[:, 1:]


def remeasured(x, change):
    """Spectra of a sample that is thicker, and scatters more."""
    return x * torch.exp(change[:, :1]) + change[:, 1:]


names = ["log thickness", "scattering"]
print(check_orbit(FunctionOrbit(wrong, [-0.02, -0.02], [0.02, 0.02], names=names), X_train))

# %%
# With the exponential, the parameter is the logarithm of a factor, and all findings are good:

orbit = FunctionOrbit(remeasured, [-0.02, -0.02], [0.02, 0.02], names=names)
print(check_orbit(orbit, X_train))

# %%
# The ranges are found from any start: here from 2 % of thickness. Estimators divide inputs by their
# largest value, so the second range is a part of that. `feature_map=None` compares the values
# themselves; what the default compares comes at the end.

models = {}
for name, candidate in (("none", "none"), ("own", orbit)):
    model = InvariantGPRegressor(candidate, feature_map=None, random_state=0)
    models[name] = model.fit(X_train, y_train)
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    print(f"{name}: evidence {model.evidence_:.1f} nats, error {error:.2f} percentage points")
model = models["own"]
print(model.orbit_.describe())

# %%
# The model may change spectra by at least as much as samples differ in thickness, a factor of two
# to both sides: the evidence asks how far the *labels* tolerate a change. On the left, one spectrum
# with draws from its learned orbit; on the right, predictions with intervals of two standard
# deviations.

spectrum = torch.tensor(X_test[:1] / model.scale_)
draws = model.orbit_.sample(spectrum, 8, generator=torch.Generator().manual_seed(0)).points[0]
mean, deviation = model.predict(X_test[:60], return_std=True)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
left.plot(wavenumber, model.scale_ * draws.detach().T, color="0.7", linewidth=1)
left.plot(wavenumber, X_test[0], color="tab:blue", linewidth=2)
left.set(xlabel="wavenumber (1/cm)", ylabel="absorbance")
right.plot([0, 10], [0, 10], color="0.7")
right.errorbar(y_test[:60], mean, 2 * deviation, fmt="o", markersize=3, linewidth=1)
right.set(xlabel="true percentage", ylabel="predicted percentage")

# %%
# Loading a file never runs code, so the function is passed again; the learned ranges replace those
# that it starts with. The exported predictor needs neither orbitgp nor the function: its draws
# are part of the graph. It reads spectra in float32.

with tempfile.TemporaryDirectory() as folder:
    orbitgp.save(model, Path(folder) / "model.safetensors")
    same = orbitgp.load(Path(folder) / "model.safetensors", orbit=orbit)
    orbitgp.export_predictor(model, Path(folder) / "model.pt2")
    exported = torch.export.load(Path(folder) / "model.pt2").module()
print(same.orbit_.describe())
print("loaded:", same.predict(X_test[:3]).round(2))
with torch.no_grad():
    print("exported:", exported(torch.tensor(X_test[:3]).float())[0].numpy().round(2))

# %%
# Where thickness and scattering are all that disturbs, features that do not see them are better
# still. The default compares patches of the spectra, whose mean and contrast are taken away, and
# chooses them by their evidence, without any transformation:

model = InvariantGPRegressor("none", random_state=0).fit(X_train, y_train)
error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
print(f"patches: evidence {model.evidence_:.1f} nats, error {error:.2f} percentage points")
