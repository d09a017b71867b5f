"""What the documentation says of exports runs."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from orbitgp import Affine, InvariantGPClassifier, export_policy, export_predictor
from tests.conftest import QUICK
from tests.export.libraries import needed

PAGE = (Path(__file__).parents[2] / "docs/export.md").read_text(encoding="utf-8")
LOOP, TOLERATED, *PREDICTORS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.usefixtures("untyped")
def test_the_training_loop_runs(tmp_path, monkeypatch):
    needed("torchvision")
    monkeypatch.chdir(tmp_path)
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
    exec(compile(LOOP, "export.md", "exec"), names)
    assert not torch.equal(network[1].weight, before)
    assert "LearnedAugmentation" in (tmp_path / "augmentation.py").read_text(encoding="utf-8")


@pytest.mark.usefixtures("untyped")
def test_a_policy_of_what_labels_tolerate():
    x, y = load_digits(return_X_y=True)
    images, labels = x[:100].reshape(-1, 8, 8), y[:100]
    model = InvariantGPClassifier("none", settings=QUICK, random_state=0).fit(images, labels)
    names = {"model": model, "X_train": images, "y_train": labels, "export_policy": export_policy}
    exec(compile(TOLERATED, "export.md", "exec"), names)
    assert "LearnedAugmentation" in names["policy"].source
    assert names["policy"].steps


@pytest.mark.usefixtures("untyped")
def test_predictor_files_are_written_and_read_as_it_says(tmp_path, monkeypatch):
    pytest.importorskip("onnxscript")
    monkeypatch.chdir(tmp_path)
    x, y = load_digits(return_X_y=True)
    images = x[:50].reshape(-1, 8, 8)
    model = InvariantGPClassifier("mirror", settings=QUICK, random_state=0).fit(images, y[:50])
    export_predictor(model, "model.pt2")
    np.save("images.npy", images)
    written, by_onnx, by_torch, smaller = PREDICTORS
    names = {"model": model}
    for text in (written, by_onnx, by_torch):
        exec(compile(text, "export.md", "exec"), names)
        if text != written:
            found = np.asarray(names["probabilities"])
            np.testing.assert_allclose(found, model.predict_proba(images), rtol=0, atol=1e-5)
    exec(compile(smaller.replace(".onnx", ".pt2"), "export.md", "exec"), names)
    assert (tmp_path / "small.pt2").exists()
