"""Adam for everything but q(u): which parameters learn together, and how fast."""

from typing import Any

import torch
from torch import nn

from orbitgp.kernels import positive_parameters
from orbitgp.model import InvariantGP
from orbitgp.orbits.ranges import UniformRange
from orbitgp.stochastic.settings import StochasticSettings

INSIDE = 1 - 5e-7
"""Of the limit of a range: a few roundings of float32 below it."""

NETWORK = 0.1
"""Of the learning rate, for the weights of a recognition network."""


def adam(model: InvariantGP, settings: StochasticSettings) -> torch.optim.Adam:
    """One group for each positive number of the kernel, whose rate is relative, and the rest."""
    positive = {name: raw for name, raw, _ in positive_parameters(model.kernel)}
    network = getattr(model.likelihood, "recognition", None)
    weights = list(network.parameters()) if isinstance(network, nn.Module) else []
    own = {id(part) for part in (*positive.values(), *weights)}
    rest = [
        part
        for module in (model.orbit, model.kernel, model.likelihood)
        for part in module.parameters()
        if part.requires_grad and id(part) not in own
    ]
    points = model.posterior.points
    spread = points.detach().std().item() or 1.0
    groups = [
        *(_group(name, [raw], settings.rate) for name, raw in positive.items()),
        _group("points", [points], settings.point_rate * spread),
        _group("recognition", weights, NETWORK * settings.rate),
        _group("rest", rest, settings.rate),
    ]
    return torch.optim.Adam([group for group in groups if group["params"]])


def _group(name: str, parameters: list[Any], rate: float) -> dict[str, Any]:
    return {"name": name, "params": parameters, "base": rate}


def set_rates(optimizer: torch.optim.Adam, model: InvariantGP, left: float) -> None:
    """Take this part of the rates; those of large positive numbers are relative to them."""
    units = {name: value for name, _, value in positive_parameters(model.kernel)}
    for group in optimizer.param_groups:
        value = units.get(group["name"])
        unit = 1.0 if value is None else max(1.0, value().detach().max().item())
        group["lr"] = group["base"] * left * unit


@torch.no_grad()
def keep_within_limits(model: InvariantGP) -> None:
    """Put back ends that a step took to their limit: from there on their gradient is 0."""
    for part in model.orbit.modules():
        if isinstance(part, UniformRange) and part.limit.isfinite().any():
            part.assign_widths(torch.minimum(part.widths, part.limit * INSIDE))
