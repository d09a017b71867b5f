"""Small networks; a fifth of the training data tells when to stop, if there are enough."""

import copy

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, l1_loss

from benchmarks.suite.folds import folds
from experiments.policies import Augment, by_hand, resnet
from experiments.prediction import Prediction, of_probabilities
from experiments.splits import Split

STEPS, BATCH, RATE, DECAY = 1500, 50, 2e-3, 1e-3
EVERY, PATIENCE = 25, 16
"""Steps between two looks at what was left out, and looks without less loss before it stops."""

LEFT_OUT = 5
FEWEST = 100
"""Examples of which some are left out; with fewer the loss of all tells when to stop."""

AS = {"usps": "mnist", "mirabest": "malaria"}
"""Data that are augmented as others are: digits, and what may be turned by any angle."""


def network(split: Split, *, seed: int) -> Prediction:
    """A ResNet with the usual augmentation, a 1-D CNN for series, an MLP for molecules."""
    scale = split.x.mean(), split.x.std()
    with torch.random.fork_rng():  # layers and transforms of torchvision draw from it
        torch.manual_seed(seed)
        match split.source.kind:
            case "series":
                return _classified(split, series_cnn(_channels(split), split.num_classes), scale)
            case "molecules":
                return _regressed(split, scale)
        augment = by_hand(AS.get(split.source.name, split.source.name))
        model = resnet(_channels(split), split.num_classes)
        return _classified(split, model, scale, augment)


def series_cnn(channels: int, num_classes: int) -> nn.Module:
    """The fully convolutional network of Wang et al. (2017), half as wide and of odd lengths."""
    widths, lengths = (channels, 64, 128, 64), (7, 5, 3)
    blocks = [
        nn.Sequential(
            nn.Conv1d(before, after, length, padding="same"), nn.BatchNorm1d(after), nn.ReLU()
        )
        for before, after, length in zip(widths, widths[1:], lengths, strict=False)
    ]
    head = (nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(widths[-1], num_classes))
    return nn.Sequential(*blocks, *head)


def mlp(num_inputs: int) -> nn.Module:
    """Two hidden layers and one number."""
    layers = (nn.Linear(num_inputs, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU())
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(256, 1), nn.Flatten(0))


def _channels(split: Split) -> int:
    """1 where inputs have no axis for channels."""
    flat = 1 if split.source.kind == "series" else 2
    return split.x.shape[1] if split.x.ndim > flat + 1 else 1


def _tensor(split: Split, x: np.ndarray) -> Tensor:
    """With an axis for channels, except for molecules."""
    found = torch.from_numpy(x).float()
    flat = {"series": 1, "molecules": 3}.get(split.source.kind, 2)
    return found.unsqueeze(1) if found.ndim == flat + 1 else found


def _classified(
    split: Split, model: nn.Module, scale: tuple[float, float], augment: Augment | None = None
) -> Prediction:
    logits = outputs(model, split, torch.from_numpy(split.y), scale, augment)
    return of_probabilities(logits.double().softmax(1).numpy())


def _regressed(split: Split, scale: tuple[float, float]) -> Prediction:
    mean, deviation = split.y.mean(), split.y.std()
    targets = torch.from_numpy((split.y - mean) / deviation).float()
    model = mlp(split.x[0].size)
    means = outputs(model, split, targets, scale).double().numpy()
    return Prediction(means * deviation + mean)


def outputs(
    model: nn.Module,
    split: Split,
    targets: Tensor,
    scale: tuple[float, float],
    augment: Augment | None = None,
) -> Tensor:
    """For the test inputs, after training by AdamW."""
    loss = l1_loss if targets.is_floating_point() else cross_entropy

    def standard(x: Tensor) -> Tensor:
        return (x - float(scale[0])) / float(scale[1])

    x, x_test = (_tensor(split, part) for part in (split.x, split.x_test))
    rows = left_out = np.arange(len(x))
    if len(x) >= FEWEST:
        rows, left_out = folds(split.y, seed=torch.initial_seed(), many=LEFT_OUT)[0]
    batch = min(BATCH, len(rows))
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY)
    best, least, since = copy.deepcopy(model.state_dict()), float("inf"), 0
    for step in range(STEPS):
        chosen = torch.from_numpy(rows)[torch.randperm(len(rows))[:batch]]
        images = x[chosen] if augment is None else augment(x[chosen])
        optimizer.zero_grad()
        loss(model.train()(standard(images)), targets[chosen]).backward()
        optimizer.step()
        if (step + 1) % EVERY == 0:
            found = float(loss(applied(model, standard(x[left_out])), targets[left_out]))
            best = copy.deepcopy(model.state_dict()) if found < least else best
            since = 0 if found < least else since + 1
            least = min(least, found)
            if since == PATIENCE:
                break
    model.load_state_dict(best)
    return applied(model, standard(x_test))


@torch.no_grad()
def applied(model: nn.Module, x: Tensor) -> Tensor:
    """What a network says, as in a test."""
    model.eval()
    return torch.cat([model(part) for part in x.split(250)])
