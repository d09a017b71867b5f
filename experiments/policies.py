"""What is a learned augmentation worth to a network, beside those that people choose?

python -m experiments.policies

A small ResNet with 1,000 labels, trained with no augmentation, with the usual one for its data,
with TrivialAugment, with RandAugment whose magnitude is chosen on a fifth of the labels, and with
the changes that are `tolerated` by a model without an orbit, for which no data are held out. One
result for each data set, policy and seed, as `policy-DATA-POLICY-SEED.json`; those that were
recorded at the same commit are not run again. The test images are looked at once, at the end of
each.
"""

import argparse
import functools
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from experiments.order import load
from experiments.record import RESULTS, record_once
from orbitgp import InvariantGPClassifier, export_policy, tolerated

DATA = ("mnist-1000", "fashion-1000", "malaria-1000", "cifar-1000")
POLICIES = ("none", "hand", "trivial", "rand", "ours")
MAGNITUDES = (3, 9, 15)
"""Of RandAugment, which has 31 of them."""

VALIDATION = 5
"""Every so manieth label is left out to choose one."""

WIDTHS = (16, 32, 64)
STEPS, BATCH = 1000, 50
RATE, DECAY = 0.1, 5e-4

OPERATORS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
"""What torchvision declares, and none of its transforms uses."""

Augment = Callable[[Tensor], Tensor]
"""Images [B, C, H, W] with values from 0 to 1 to images of the same shape."""


class Images(NamedTuple):
    """Training and test images from 0 to 1, and labels from 0 on."""

    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """relu(shortcut + inner)."""
        return torch.relu(self.shortcut(x) + self.inner(x))


def resnet(channels: int, num_classes: int) -> nn.Module:
    """Three blocks, 75 thousand weights."""
    first, *_, last = WIDTHS
    blocks = [
        Block(before, after, stride)
        for before, after, stride in zip((first, *WIDTHS), WIDTHS, (1, 2, 2), strict=False)
    ]
    return nn.Sequential(
        nn.Conv2d(channels, first, 3, 1, 1, bias=False),
        nn.BatchNorm2d(first),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(last, num_classes),
    )


def trained(x: Tensor, y: Tensor, num_classes: int, augment: Augment, seed: int) -> nn.Module:
    """By stochastic gradients with momentum and a rate that rises once and falls."""
    torch.manual_seed(seed)
    last: Any = {"memory_format": torch.channels_last}
    network = resnet(x.shape[1], num_classes).to(**last)
    scale = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True)
    optimizer = torch.optim.SGD(
        network.parameters(), RATE, momentum=0.9, weight_decay=DECAY, nesterov=True
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, STEPS)
    rows = torch.cat([torch.randperm(len(x)) for _ in range(STEPS * BATCH // len(x) + 1)])
    for chosen in rows[: STEPS * BATCH].split(BATCH):
        images = (augment(x[chosen]) - scale[0]) / scale[1]
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):  # 2.4 times as fast where it is multiplied
            logits = network(images.contiguous(**last))
        cross_entropy(logits.float(), y[chosen]).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


@torch.no_grad()
def scored(network: nn.Module, x: Tensor, x_test: Tensor, y_test: Tensor) -> tuple[float, float]:
    """Error, and mean negative log-likelihood in nats."""
    mean, deviation = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True)
    logits = torch.cat([network((part - mean) / deviation) for part in x_test.split(500)])
    error = (logits.argmax(1) != y_test).double().mean().item()
    return error, cross_entropy(logits, y_test).item()


def one_by_one(transform: Callable[[Tensor], Tensor]) -> Augment:
    """For transforms that draw once for a whole batch."""
    return lambda images: torch.stack([transform(image) for image in images])


def cropped(images: Tensor, margin: int) -> Tensor:
    """Each image moved by up to so many pixels, 0 outside."""
    wide = pad(images, [margin] * 4)
    height, width = images.shape[-2:]
    moves = torch.randint(2 * margin + 1, (len(images), 2)).tolist()
    return torch.stack(
        [image[:, a : a + height, b : b + width] for image, (a, b) in zip(wide, moves, strict=True)]
    )


def flipped(images: Tensor, axis: int) -> Tensor:
    """Half of them."""
    chosen = torch.rand(len(images), 1, 1, 1) < 0.5
    return torch.where(chosen, images.flip(axis), images)


def declare_operators() -> None:
    """Declare the operators of torchvision if its compiled part was built for another torch.

    Without them torchvision cannot be imported, although its transforms use none.
    """
    spec: Any = importlib.util.find_spec("torchvision")
    (folder,) = spec.submodule_search_locations
    try:
        for compiled in Path(folder).glob("_C*"):
            torch.ops.load_library(str(compiled))
    except OSError:
        for name, form in OPERATORS.items():
            if not hasattr(torch.ops.torchvision, name):
                torch.library.define(f"torchvision::{name}", form)


def transforms() -> Any:
    """Those of torchvision, whose stubs are wrong about numbers."""
    declare_operators()
    return importlib.import_module("torchvision.transforms.v2")


def by_hand(name: str) -> Augment:
    """What tutorials do with such data."""
    v2 = transforms()
    smooth = v2.InterpolationMode.BILINEAR
    if name.startswith("mnist"):
        return one_by_one(v2.RandomAffine(15, (0.1, 0.1), (0.9, 1.1), 10, interpolation=smooth))
    if name.startswith("malaria"):
        turn = one_by_one(v2.RandomRotation(180, interpolation=smooth))
        return lambda images: turn(flipped(flipped(images, -1), -2))
    margin = 2 if name.startswith("fashion") else 4
    return lambda images: flipped(cropped(images, margin), -1)


def rand_augment(magnitude: int) -> Augment:
    """Two operations of this magnitude."""
    return one_by_one(transforms().RandAugment(2, magnitude))


def chosen_magnitude(data: Images, num_classes: int, seed: int) -> int:
    """The one with the least error on the labels that are left out."""
    out = torch.arange(len(data.x)) % VALIDATION == 0
    x, y = data.x[~out], data.y[~out]

    def error(magnitude: int) -> float:
        network = trained(x, y, num_classes, rand_augment(magnitude), seed)
        return scored(network, x, data.x[out], data.y[out])[0]

    return min(MAGNITUDES, key=error)


def by_tolerance(name: str, seed: int) -> tuple[Augment, dict[str, Any]]:
    """The changes of training images that leave their labels as they are."""
    data = load(name, seed)
    model = InvariantGPClassifier("none", random_state=seed).fit(data.x, data.y)
    evidence, found = model.feature_evidence_, tolerated(model, data.x, data.y, kind="images")
    about = {
        "features": max(evidence, key=lambda each: evidence[each]),
        "found": found.names,
        "tolerated": found.orbit.describe(),
        "changes": found.records(),
    }
    transforms()  # makes torchvision importable
    policy: Any = export_policy(found.orbit, "torchvision", leave_out=True)
    return policy.make(), {**about, "left_out": policy.left_out, "source": policy.source}


def _unchanged(images: Tensor) -> Tensor:
    return images


def policy_of(
    name: str, policy: str, data: Images, num_classes: int, seed: int
) -> tuple[Augment, dict[str, Any]]:
    """An augmentation, and what is to be told of it."""
    if policy == "ours":
        return by_tolerance(name, seed)
    if policy == "rand":
        magnitude = chosen_magnitude(data, num_classes, seed)
        return rand_augment(magnitude), {"magnitude": magnitude}
    if policy == "trivial":
        return one_by_one(transforms().TrivialAugmentWide()), {}
    return (by_hand(name) if policy == "hand" else _unchanged), {}


def images_of(name: str, seed: int) -> Images:
    """The data of `experiments.order` as networks take them."""
    data = load(name, seed)
    assert data.x_test is not None
    assert data.y_test is not None
    classes = np.unique(data.y)

    def images(x: np.ndarray) -> Tensor:
        scaled = torch.from_numpy(x).float() / 255
        return scaled if scaled.ndim == 4 else scaled.unsqueeze(1)

    def labels(y: np.ndarray) -> Tensor:
        return torch.from_numpy(np.searchsorted(classes, y)).long()

    return Images(images(data.x), labels(data.y), images(data.x_test), labels(data.y_test))


def run(name: str, policy: str, seed: int) -> dict[str, Any]:
    """One cell of the table."""
    data = images_of(name, seed)
    num_classes = int(data.y.max()) + 1
    start = time.perf_counter()
    augment, about = policy_of(name, policy, data, num_classes, seed)
    seconds = time.perf_counter() - start
    network = trained(data.x, data.y, num_classes, augment, seed)
    error, nll = scored(network, data.x, data.x_test, data.y_test)
    return {
        "data": name,
        "policy": policy,
        "test_error": error,
        "test_nll": nll,
        "seconds_to_policy": round(seconds, 1),
        "seconds": round(time.perf_counter() - start, 1),
        **about,
    }


def main() -> None:
    """All cells that were chosen, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--policy", nargs="*", default=list(POLICIES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for name in arguments.data:
            for policy in arguments.policy:
                command = f"python -m experiments.policies --data {name} --policy {policy}"
                fit = functools.partial(run, name, policy, seed)
                record_once(arguments.out, f"policy-{name}-{policy}", command, seed, fit)


if __name__ == "__main__":
    main()
