"""The experiments show what the paper says they show."""

import json
from functools import partial

import pytest
import torch

from experiments import (
    compact,
    feature_choice,
    feature_network,
    few_labels,
    mnist,
    order,
    paper,
    partial_rotation,
    policies,
    properties,
    rotated,
    symmetric,
)
from experiments.paper import METHODS
from experiments.splits import Split
from orbitgp import InvariantGPClassifier, InvariantGPRegressor, StochasticSettings
from orbitgp.data.labelled import LabelledData
from tests.conftest import QUICK
from tests.export.libraries import needed


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("seed", range(5))
def test_evidence_finds_the_symmetry(seed):
    fits, models, _ = symmetric.run(seed)
    ours, plain = fits["invariant"], fits["non-invariant"]
    assert ours.log_evidence > plain.log_evidence
    assert ours.elbo > plain.elbo
    assert ours.test_rmse < plain.test_rmse
    assert plain.train_rmse <= ours.train_rmse
    for fit in fits.values():
        assert fit.log_evidence - 0.1 < fit.elbo <= fit.log_evidence + 1e-6
    x = torch.tensor([[0.3, -1.2]], dtype=torch.float64)
    swapped = models["invariant"].predict(x.flip(1)).mean
    torch.testing.assert_close(models["invariant"].predict(x).mean, swapped)


def test_figure_is_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["symmetric", "--seed", "0", "--out", str(tmp_path)])
    monkeypatch.setattr(symmetric, "STEPS", 2)
    symmetric.main()
    assert (tmp_path / "symmetric-0.png").stat().st_size > 10_000
    assert (tmp_path / "symmetric-0.json").exists()
    assert "log evidence" in capsys.readouterr().out


@pytest.fixture
def few_digits(monkeypatch):
    """Upright and lying bars as if they were digits, and little training."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(120, 28, 28, generator=generator) * 40
    y = torch.arange(120) % 2
    x[y == 0, 8:20, 13:15] += 200
    x[y == 1, 13:15, 8:20] += 200
    x, y = x.numpy(), y.numpy()
    data = LabelledData(x[:90], y[:90], x[90:], y[90:])
    quick = partial(InvariantGPClassifier, settings=QUICK)
    for module in (mnist, few_labels, partial_rotation, rotated, compact, paper):
        monkeypatch.setattr(module, "load_named", lambda _: data)
    either = partial(quick_classifier, InvariantGPClassifier)
    monkeypatch.setattr(paper, "InvariantGPClassifier", either)
    for module in (mnist, order, partial_rotation, rotated, compact):
        monkeypatch.setattr(module, "InvariantGPClassifier", quick)
    monkeypatch.setattr(policies, "load", lambda *_: data)
    return data


def quick_classifier(kind, *arguments, settings, **options):
    """With settings of its own if they are stochastic, or else quick ones."""
    return kind(*arguments, settings=settings or QUICK, **options)


def run_main(module, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", [module.__name__, *arguments])
    module.main()


@pytest.mark.usefixtures("untyped")
def test_mnist_writes_what_it_found(few_digits, monkeypatch, tmp_path):
    features, options = "pixels", ["--orbit", "rotation", "--num-data", "30"]
    options += ["--features", features]
    run_main(mnist, monkeypatch, *options, "--seed", "3", "--out", str(tmp_path))
    result = json.loads((tmp_path / f"mnist-{features}-rotation-30-3.json").read_text())
    assert result["num_data"] == 30
    assert result["test_error"] < 20
    assert {"elbo", "elbo_standard_error", "test_nll", "test_ece"} <= set(result)
    assert set(result["seconds"]) == {"learn", "solve", "total"}
    assert [(own["name"], own["unit"]) for own in result["ranges"]] == [("rotation", "°")]
    assert [own["name"] for own in result["range_curves"][-1]] == ["rotation"]
    assert (tmp_path / f"mnist-{features}-rotation-30-3.png").stat().st_size > 10_000


@pytest.mark.usefixtures("untyped", "few_digits")
def test_a_learned_rotation_is_compared_with_a_fixed_one(monkeypatch, tmp_path):
    monkeypatch.setattr(rotated, "RESULTS", tmp_path)
    run_main(rotated, monkeypatch, "--model", "none", "fixed-rotation", "--seeds", "1")
    found = {one["model"]: one for one in map(read_json, tmp_path.glob("rotated-*.json"))}
    assert found["fixed-rotation"]["learned"] == "rotation by any angle"
    # upright and lying bars are the same if they may be turned by any angle
    assert found["none"]["evidence"] > found["fixed-rotation"]["evidence"]


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.usefixtures("untyped", "few_digits")
def test_the_paper_is_run_by_both_methods_and_drawn(monkeypatch, tmp_path):
    short = StochasticSettings(num_steps=30, batch_size=30, num_inducing=20)
    monkeypatch.setattr(paper, "RESULTS", tmp_path)
    monkeypatch.setattr(paper, "SETTINGS", dict.fromkeys(paper.SETTINGS, short))
    monkeypatch.setattr(paper.tables, "write", lambda: None)
    assert paper.draw_figures(tmp_path) == []
    for figure, model, methods in (("3", "rotation-90", ["stochastic"]), ("4", "rbf", METHODS)):
        for method in methods:
            chosen = ("--figure", figure, "--model", model, "--method", method)
            run_main(paper, monkeypatch, "--run", *chosen, "--seeds", "1")
    results = {path.stem: read_json(path) for path in tmp_path.glob("*.json")}
    assert results.keys() == {
        *("paper-3-rotation-90-stochastic-1", "paper-4-rbf-stochastic-1"),
        "paper-4-rbf-default-1",
    }
    for result in results.values():
        keys = ("figure", "model", "method", "seed", "test_error", "bound", "minutes", "learned")
        assert set(keys) <= result.keys()
        # bars that are turned by any angle up to 90° are alike
        assert result["figure"] == "3" or result["test_error"] < 20
    curve = results["paper-4-rbf-stochastic-1"]["curve"]
    assert all({"minutes", "bound", "test_error"} <= point.keys() for point in curve)
    assert len(curve) > 20
    assert {path.name for path in tmp_path.glob("*.png")} == {"paper-3.png", "paper-4.png"}


def test_subsets_of_digits_are_drawn_once(few_digits):
    first, second, other = (mnist.subset(few_digits, 30, seed)[0] for seed in (0, 0, 1))
    assert (first == second).all()
    assert (first != other).any()
    assert len(mnist.subset(few_digits, 1000, 0)[0]) == 90


@pytest.mark.usefixtures("untyped")
def test_contenders_of_few_labels_learn(few_digits, monkeypatch):
    monkeypatch.setattr(few_labels, "STEPS", 30)
    monkeypatch.setattr(few_labels, "SVGP_STEPS", 20)
    values = few_labels.run(60, 0)
    errors = {name: value for name, value in values.items() if name.endswith("error")}
    assert len(errors) == 4
    assert all(error < 30 for error in errors.values()), errors


@pytest.mark.usefixtures("untyped")
def test_the_angle_of_digits_is_learned_and_drawn(few_digits, monkeypatch, tmp_path):
    monkeypatch.setattr(partial_rotation, "NUM_DATA", (40, 80))
    monkeypatch.setattr(partial_rotation, "NUM_INDUCING", (30,))
    run_main(
        partial_rotation,
        monkeypatch,
        *("--angle", "20", "--seeds", "0", "--out", str(tmp_path)),
    )
    rows = json.loads((tmp_path / "partial-rotation-20-0.json").read_text())["rows"]
    assert [row["num_data"] for row in rows] == [40, 80, 40, 80, 80]
    assert [row["evidence_kind"] for row in rows] == ["exact"] * 4 + ["bound"]
    assert rows[1]["learned_angle"] > 5
    assert rows[2]["learned_angle"] == 0
    assert (tmp_path / "partial-rotation-20.png").stat().st_size > 10_000


def test_digits_are_turned_by_no_more_than_the_angle(few_digits):
    images = torch.from_numpy(few_digits.x[:10] / 255).float()
    generator = torch.Generator().manual_seed(0)
    same = partial_rotation.turned(images, 0.0, generator=generator)
    torch.testing.assert_close(same, images, rtol=1e-4, atol=1e-4)
    other = partial_rotation.turned(images, 1.0, generator=generator)
    assert other.shape == images.shape
    assert (other - images).abs().amax((1, 2)).median() > 0.1


@pytest.mark.usefixtures("untyped")
def test_a_cell_of_the_order_has_all_that_is_asked_of_it(few_digits, monkeypatch, tmp_path):
    monkeypatch.setattr(order, "load_named", lambda _: few_digits)
    monkeypatch.setattr(order, "RESULTS", tmp_path)
    run_main(
        order,
        monkeypatch,
        *("--data", "mnist-1000", "--features", "pixels", "--family", "none", "mirror"),
    )
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert names == [f"order-mnist-1000-pixels-{name}-0.json" for name in ("mirror", "none")]
    result = json.loads((tmp_path / names[0]).read_text())
    assert {"data", "features", "family", "seed", "evidence", "evidence_error"} <= set(result)
    assert {"evidence_kind", "test_error", "test_nll", "test_nll_error"} <= set(result)
    assert result["test_error"] < 0.3


def test_series_are_moved_in_time():
    series = torch.arange(8.0).expand(2, 8)
    moved = order.shifted(series, torch.tensor([[0.25], [-0.125]]))
    assert moved[0].tolist() == [0, 0, 0, 1, 2, 3, 4, 5]
    assert moved[1].tolist() == [1, 2, 3, 4, 5, 6, 7, 7]
    assert torch.equal(order.shifted(series, torch.zeros(2, 1)), series)


@pytest.mark.usefixtures("untyped")
def test_a_known_symmetry_has_the_evidence_that_gpytorch_computes(monkeypatch):
    monkeypatch.setattr(properties, "NUM_TRAIN", 60)
    monkeypatch.setattr(
        properties, "InvariantGPRegressor", partial(InvariantGPRegressor, settings=QUICK)
    )
    found = properties.known_symmetry(0)
    assert found["S4"]["evidence"] > found["C4"]["evidence"] > found["none"]["evidence"]
    for row in found.values():
        assert row["evidence"] == pytest.approx(row["gpytorch"], abs=1e-6)


@pytest.mark.usefixtures("untyped", "few_digits")
def test_files_of_compact_predictors_are_compared(monkeypatch, tmp_path):
    monkeypatch.setattr(compact, "SIZES", (8, 16, 1000))
    monkeypatch.setattr(compact, "OrientedEnergy", lambda: None)
    run_main(compact, monkeypatch, "--num-data", "40", "--out", str(tmp_path))
    rows = json.loads((tmp_path / "compact-0.json").read_text())["rows"]
    whole, small, larger = rows
    assert [row["averages"] for row in rows] == [40, 8, 16]
    assert small["megabytes"] <= larger["megabytes"] <= whole["megabytes"]
    assert small["moved"] > larger["moved"] > whole["moved"] == 0
    assert whole["test_error"] < 20
    assert whole["milliseconds"] > 0


@pytest.mark.usefixtures("few_digits")
@pytest.mark.parametrize("name", ["mnist-1000", "fashion-1000", "malaria-1000"])
def test_networks_are_trained_with_policies(name, monkeypatch):
    needed("torchvision")
    monkeypatch.setattr(policies, "STEPS", 6)
    monkeypatch.setattr(policies, "MAGNITUDES", (3,))
    alike = ("none", "trivial", "rand", "ours")  # for all data
    for policy in ("hand", *(alike if name == "mnist-1000" else ())):
        values = policies.run(name, policy, 0)
        assert 0 <= values["test_error"] <= 1
        assert values["test_nll"] > 0


@pytest.mark.usefixtures("untyped", "few_digits")
def test_feature_networks_are_trained_by_the_evidence(monkeypatch, tmp_path):
    quick = partial(InvariantGPClassifier, settings=QUICK)
    monkeypatch.setattr(feature_network, "InvariantGPClassifier", quick)
    monkeypatch.setattr(feature_network, "STEPS", 10)
    monkeypatch.setattr(feature_network, "BATCH", 60)
    options = ["--data", "mnist-1000", "--features", "trained", "--seeds", "0"]
    run_main(feature_network, monkeypatch, *options, "--out", str(tmp_path))
    found = json.loads((tmp_path / "feature-mnist-1000-trained-0.json").read_text())
    course = found["evidence_per_image"]
    assert course[-1] > course[0] + 1
    assert found["test_error"] < 0.3


@pytest.mark.usefixtures("untyped")
def test_features_are_compared_with_the_default(few_digits, monkeypatch, tmp_path):
    quick = partial(InvariantGPClassifier, settings=QUICK)
    monkeypatch.setattr(feature_choice, "InvariantGPClassifier", quick)
    arrays = [few_digits.x / 255, few_digits.y, few_digits.x_test / 255, few_digits.y_test]
    monkeypatch.setattr(feature_choice, "load", lambda source, *_: Split(source, *arrays))
    options = ["--data", "mnist", "--features", "default", "pixels"]
    run_main(feature_choice, monkeypatch, *options, "--out", str(tmp_path))
    default, pixels = (
        json.loads((tmp_path / f"choice-mnist-{name}-0.json").read_text())
        for name in ("default", "pixels")
    )
    assert default["chosen"] == "oriented edges"
    assert default["evidence"] > pixels["evidence"]
    assert max(default["error"], pixels["error"]) < 0.3


def test_moves_of_a_batch_differ_between_its_images(few_digits):
    images = torch.from_numpy(few_digits.x[:20] / 255).unsqueeze(1)
    torch.manual_seed(0)
    moved = policies.cropped(images, 2)
    places = [
        {(a, b) for a in range(-2, 3) for b in range(-2, 3) if same(moved[k], images[k], a, b)}
        for k in range(20)
    ]
    assert all(places)
    assert len(set(map(tuple, places))) > 5
    turned = policies.flipped(images, -1)
    assert 3 < sum(torch.equal(one, image) for one, image in zip(turned, images, strict=True)) < 17


def same(moved, image, down, across):
    """Whether an image was moved by so many pixels, as far as both show it."""
    shifted = image.roll((down, across), (-2, -1))
    return torch.equal(moved[:, 2:-2, 2:-2], shifted[:, 2:-2, 2:-2])
