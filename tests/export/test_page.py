"""The training loop in the documentation runs."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from orbitgp import Affine
from tests.export.libraries import needed

PAGE = (Path(__file__).parents[2] / "docs/export.md").read_text()


@pytest.mark.usefixtures("untyped")
def test_the_training_loop_runs(tmp_path, monkeypatch):
    needed("torchvision")
    monkeypatch.chdir(tmp_path)
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(8, 1, 6, 6, generator=generator)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 2))
    before = network[1].weight.clone()
    names = {
        "torch": torch,
        "model": SimpleNamespace(orbit_=Affine(-0.1, 0.1)),
        "loader": [(images, torch.arange(8) % 2)],
        "network": network,
        "optimizer": torch.optim.SGD(network.parameters(), lr=0.1),
    }
    exec(compile(text, "export.md", "exec"), names)
    assert not torch.equal(network[1].weight, before)
    assert "LearnedAugmentation" in (tmp_path / "augmentation.py").read_text(encoding="utf-8")
