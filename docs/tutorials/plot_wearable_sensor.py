"""
Gestures of a wearable sensor
=============================

An accelerometer at the wrist records three axes at 50 Hz, and we want to know whether its wearer
flicked, tapped or twisted the hand. Nobody starts at the same moment, and some move harder than
others. Which of these differences should a classifier ignore, and how far?

The recordings are simulated, so that we know the answer: gestures start up to 200 ms early or late,
their strength varies, and their speed does not. For recordings of your own, replace `X` by an array
[n, channels, times], `y` by the labels, and `RATE` by your sampling rate.
"""

import joblib
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.base import clone

from orbitgp import (
    InvariantGPClassifier,
    Magnitude,
    TimeAffine,
    TimeWarp,
    TrainingSettings,
    compare,
    compose,
)

random = np.random.default_rng(0)
RATE, LENGTH = 50.0, 64
seconds = np.arange(LENGTH) / RATE
NAMES = np.array(["flick", "tap", "twist"])

# of each gesture and axis: height and delay (s) of pulses of 50 ms
PULSES = [
    [[(1, 0)], [(0.3, 0)], [(1, 0), (-0.8, 0.1)]],
    [[(1, 0)], [(0.3, 0), (0.8, 0.18)], [(1, 0), (-0.8, 0.1)]],
    [[(1, 0)], [(-0.3, 0.08), (0.5, 0.18)], [(1, 0), (-0.3, 0.1), (-0.5, 0.18)]],
]


def gesture(kind):
    """One recording [3, 64] in units of g."""
    start = 0.64 + random.uniform(-0.2, 0.2)
    signal = np.zeros((3, LENGTH))
    for axis, pulses in enumerate(PULSES[kind]):
        for height, delay in pulses:
            signal[axis] += height * np.exp(-(((seconds - start - delay) / 0.05) ** 2))
    return random.uniform(0.6, 1.4) * signal + 0.15 * random.normal(size=signal.shape)


def recorded(count):
    """Recordings [count, 3, 64] and their gestures."""
    kinds = random.integers(3, size=count)
    return np.stack([gesture(kind) for kind in kinds]), NAMES[kinds]


X_train, y_train = recorded(60)
X_test, y_test = recorded(600)

# %%
# The candidates: another start and speed of the whole recording, a speed that changes within it,
# another strength, and start with strength. All begin with small ranges, which are learned. With
# the sampling rate, `TimeAffine` shows shifts in milliseconds; small `settings` make fits short.

candidates = {
    "none": "none",
    "shift and stretch": TimeAffine(LENGTH, sampling_rate=RATE),
    "warp": TimeWarp(LENGTH),
    "magnitude": Magnitude(),
    "shift, stretch, magnitude": compose(TimeAffine(LENGTH, sampling_rate=RATE), Magnitude()),
}
quick = TrainingSettings(max_steps=8, scan_size=60, climb_draws=16, search_size=60)
classifier = InvariantGPClassifier(feature_map=torch.nn.Flatten(), settings=quick, random_state=0)
one_by_one = joblib.Parallel(n_jobs=1)
found = compare(candidates, X_train, y_train, estimator=classifier, executor=one_by_one)
print(found)

# %%
# Time explains the labels far better than no invariance, and the range of the shift is about as
# wide as the differences that we put in, or wider: the evidence asks how far *labels* tolerate a
# change, not how far recordings were changed. So a gesture may also run somewhat slower or faster,
# although ours did not. A warp can imitate part of a shift, and has less evidence. Magnitude alone
# helps little, and added to shift and stretch it changes the evidence by about as little as the
# error: of the two we take the simpler. A range that is "(not identified)" could be set to zero for
# less than 2 nats.

plain = classifier.fit(X_train, y_train)
best = clone(classifier).set_params(orbit=candidates["shift and stretch"]).fit(X_train, y_train)
for name, model in (("none", plain), ("shift and stretch", best)):
    error = 100 * (1 - model.score(X_test, y_test))
    print(f"{name}: evidence {model.evidence_:.0f} nats, test error {error:.1f} %")

# %%
# One recording of each gesture, with draws from its learned orbit.

places = [np.flatnonzero(y_test == name)[0] for name in NAMES]
series = torch.tensor(X_test[places], dtype=torch.float32)
draws = best.orbit_.sample(series, 8, generator=torch.Generator().manual_seed(0)).points.detach()
figure, axes = plt.subplots(3, 3, figsize=(7.5, 5), sharex=True, sharey=True, layout="constrained")
for row, name in enumerate(NAMES):
    for channel, axis in enumerate(axes[row]):
        axis.plot(1000 * seconds, draws[row, :, channel].T, color="0.75", linewidth=0.8)
        axis.plot(1000 * seconds, series[row, channel], color="tab:blue")
    axes[row, 0].set_ylabel(f"{name}\nacceleration (g)")
for channel, axis in enumerate(axes[0]):
    axis.set_title("xyz"[channel])
for axis in axes[2]:
    axis.set_xlabel("time (ms)")
