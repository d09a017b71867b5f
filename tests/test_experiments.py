"""The experiments show what the paper says they show."""

import json
from functools import partial

import pytest
import torch

from experiments import (
    few_labels,
    gradient_noise,
    growth,
    hand_set,
    likelihoods,
    mnist,
    partial_rotation,
    starts,
    symmetric,
    tangent,
)
from orbitgp import InvariantGPClassifier, TrainingSettings
from orbitgp.data.labelled import LabelledData
from orbitgp.training import teaching


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
    quick = partial(InvariantGPClassifier, settings=TrainingSettings(max_steps=4))
    for module in (
        *(mnist, few_labels, growth, hand_set, likelihoods, partial_rotation, starts, tangent),
    ):
        monkeypatch.setattr(module, "load_named", lambda _: data)
    for module in (mnist, growth, hand_set, likelihoods, tangent):
        monkeypatch.setattr(module, "InvariantGPClassifier", quick)
    return data


def run_main(module, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", [module.__name__, *arguments])
    module.main()


@pytest.mark.usefixtures("untyped")
def test_mnist_writes_what_it_found(few_digits, monkeypatch, tmp_path):
    features, options = "oriented", ["--orbit", "affine+local", "--num-data", "60"]
    options += ["--features", features]
    run_main(mnist, monkeypatch, *options, "--seed", "3", "--out", str(tmp_path))
    result = json.loads((tmp_path / f"mnist-{features}-affine+local-60-3.json").read_text())
    assert result["num_data"] == 60
    assert result["test_error"] < 20
    assert {"elbo", "elbo_standard_error", "test_nll", "test_ece"} <= set(result)
    assert set(result["seconds"]) == {"learn", "solve", "total"}
    assert "rotation (°)" in result["ranges"]
    assert (tmp_path / f"mnist-{features}-affine+local-60-3.png").stat().st_size > 10_000


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
def test_growth_is_drawn(few_digits, monkeypatch, tmp_path):
    for name, values in (("POINTS", (5, 10)), ("SIZES", (20, 90)), ("SAMPLES", (2,))):
        monkeypatch.setattr(growth, name, values)
    monkeypatch.setattr(growth, "AVERAGED", (1, 2))
    monkeypatch.setattr(growth, "USUAL", {**growth.USUAL, "num_points": 10, "num_data": 90})
    values = growth.run("pixels", 0)
    assert [point["num_points"] for point in values["num_points"]] == [5, 10]
    assert all(point["test_error"] < 40 for point in values["num_data"])
    growth.draw(values, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000


@pytest.mark.usefixtures("untyped")
def test_warp_and_tangent_are_compared(few_digits, monkeypatch, tmp_path):
    run_main(tangent, monkeypatch, "--num-data", "60", "--out", str(tmp_path))
    rows = json.loads((tmp_path / "mnist-tangent-60-0.json").read_text())["rows"]
    assert set(rows) == {"warp", "tangent"}
    assert all(row["test_error"] < 20 for row in rows.values())
    assert all(row["microseconds_for_a_draw"] > 0 for row in rows.values())


def test_noise_of_a_gradient_is_that_of_draws_and_that_of_batches():
    generator = torch.Generator().manual_seed(0)
    batches, draws = (torch.randn(4000, k, 1, generator=generator).double() for k in (1, 4))
    found = gradient_noise.noise(3 * batches + 0.5 * draws)
    for name, expected in (("batch_variance", 9.0), ("orbit_variance", 0.25)):
        error = expected * (2 / 4000) ** 0.5  # of a variance of 4,000 normals, at most
        z = (found[name] - expected) / error
        assert abs(z) < 4, f"{name}: {found[name]} ± {error}"


def test_noise_of_gradients_falls_with_samples(few_digits, monkeypatch, tmp_path):
    for name, value in (("SAMPLES", (2, 16)), ("NUM_BATCHES", 3), ("LEARNED_STEPS", 2)):
        monkeypatch.setattr(gradient_noise, name, value)
    run_main(gradient_noise, monkeypatch, "--out", str(tmp_path))
    few, many = json.loads((tmp_path / "mnist-gradient-noise-pixels-0.json").read_text())["rows"]
    assert many["orbit_variance"] < few["orbit_variance"]
    assert min(few["times_the_least"], many["times_the_least"]) == 1


@pytest.mark.usefixtures("untyped")
def test_likelihoods_are_compared(few_digits, monkeypatch, tmp_path):
    monkeypatch.setattr(likelihoods, "RESULTS", tmp_path)
    run_main(likelihoods, monkeypatch, "--data", "mnist-60", "--budget", "5")
    result = json.loads((tmp_path / "likelihoods-mnist-60-0.json").read_text())
    assert set(result["likelihoods"]) == {"gaussian", "softmax", "stick-breaking"}
    assert all(row["test_error"] < 20 for row in result["likelihoods"].values())
    monkeypatch.setattr(likelihoods, "PAIRS", {"usps-0-1": ("usps", (0, 1))})
    x, y, _, _ = likelihoods.load("usps-0-1", 0)
    assert len(x) == len(y) == 90


def test_vertex_of_a_parabola():
    values = [3.0 - 2 * (x - 0.3) ** 2 for x in (-1, 0, 1)]
    assert partial_rotation.vertex(*values) == pytest.approx(0.3)
    assert partial_rotation.vertex(1.0, 1.0, 1.0) == 0


def test_a_search_ends_at_the_highest_place_and_tries_none_twice(few_digits, monkeypatch):
    tried = []

    def bound(search, place, num_averages):
        tried.append((place, num_averages))
        angle = -(((place.narrower or 0) - 6.7) ** 2)
        ridge = -4 * (place.shorter + place.larger - 1) ** 2
        value = angle + ridge - 0.3 * (place.shorter - 2) ** 2
        return partial_rotation.Trial(None, value, 0.0)  # pyright: ignore

    monkeypatch.setattr(partial_rotation.Search, "_trial", bound)
    search = partial_rotation.Search(*partial_rotation.digits(20, 60, 0), 0)
    ends = [search.climbed(partial_rotation.Place(0, 0, narrower)) for narrower in (3, 12)]
    for end in ends:
        assert (end.shorter, end.larger) == (2, -1)
        assert end.narrower == pytest.approx(6.7)
        assert end.angle == pytest.approx(180 / 1.1**6.7)
    assert len(tried) == len(set(tried))
    assert search.climbed(partial_rotation.Place(0, 0, None)).angle == 0
    widest = partial_rotation.Place(0, 0, 0)
    assert widest.moved(narrower=-1) == widest


@pytest.mark.usefixtures("untyped")
def test_the_angle_of_digits_is_learned_and_drawn(few_digits, monkeypatch, tmp_path):
    monkeypatch.setattr(partial_rotation, "NUM_AVERAGES", (10, 20))
    monkeypatch.setattr(teaching, "NUM_STEPS", 50)
    quick = TrainingSettings(max_steps=4, evaluate_every=2)
    monkeypatch.setattr(partial_rotation, "SETTINGS", quick)
    options = ["--angle", "20", "--starts", "5", "30", "--num-data", "60", "--out", str(tmp_path)]
    for network in ([], ["--recognition"]):
        run_main(partial_rotation, monkeypatch, *options, *network)
        name = f"partial-rotation-20-30{''.join(network)[1:]}-0.json"
        result = json.loads((tmp_path / name).read_text())
        assert 10 < result["learned_angle"] < 60
        assert result["test_error"] < 30
        assert result["without_invariance"]["learned_angle"] == 0
        assert len(result["curve"]) == 3
        figure = tmp_path / f"partial-rotation-20{''.join(network)[1:]}-0.png"
        assert figure.stat().st_size > 10_000


def test_digits_are_turned_by_no_more_than_the_angle(few_digits):
    images = torch.from_numpy(few_digits.x[:10] / 255).float()
    generator = torch.Generator().manual_seed(0)
    same = partial_rotation.turned(images, 0.0, generator=generator)
    torch.testing.assert_close(same, images, rtol=1e-4, atol=1e-4)
    other = partial_rotation.turned(images, 1.0, generator=generator)
    assert other.shape == images.shape
    assert (other - images).abs().amax((1, 2)).min() > 0.1


@pytest.mark.usefixtures("untyped")
def test_ranges_set_by_hand_stay_so(few_digits, monkeypatch, tmp_path):
    monkeypatch.setattr(hand_set, "NUM_POINTS", 40)
    monkeypatch.setattr(hand_set, "HAND_SET", {"turns": (0.5, 0.0, 0.0, 0.0, 0.0, 0.0)})
    run_main(hand_set, monkeypatch, "--num-data", "60", "--out", str(tmp_path))
    rows = json.loads((tmp_path / "mnist-hand-set-pixels-60-0.json").read_text())["rows"]
    assert rows["turns"]["ranges"].startswith("rotation −29° … +29°, x-scale ×1.00 … ×1.00")
    assert set(rows) == {"learned", "turns"}
    assert max(row["test_error"] for row in rows.values()) < 20


@pytest.mark.parametrize("ends", ["together", "apart"])
def test_starts_are_compared(ends, few_digits, monkeypatch, tmp_path):
    quick = partial(TrainingSettings, max_steps=4, evaluate_every=2)
    monkeypatch.setattr(starts, "TrainingSettings", quick)
    options = ["--ends", ends, "--num-starts", "2", "--out", str(tmp_path)]
    run_main(starts, monkeypatch, *options)
    result = json.loads((tmp_path / f"mnist-starts-pixels-{ends}-0.json").read_text())
    rows = result["named"] + result["starts"]
    assert [row["lengthscale_factor"] for row in rows[:2]] == [1, 1]
    assert len({row["start"] for row in rows}) == 4
    best = max(row["elbo"] for row in rows)
    for row in rows:
        assert row["same"] == (best - row["elbo"] <= 0.005 * abs(best))
    assert len(result["ranges_of_the_same"]) == 6


def test_a_start_is_harmless_if_it_ends_well_or_is_dropped_for_one_that_does():
    def row(screened, elbo):
        return {"elbo_when_screened": screened, "elbo": elbo, "ranges": {"turn": [-elbo, elbo]}}

    free = [row(90, 999), row(70, 500), row(110, 500)]
    found = starts.summary([row(100, 998), row(80, 400)], free)
    assert (found["num_same"], found["num_harmless"]) == (1, 2)
    assert [start["dropped_by_screen"] for start in free] == [True, True, False]
    assert found["ranges_of_the_same"]["turn"]["mean"] == [-998.5, 998.5]
    found = starts.summary([row(100, 900)], [row(90, 999), row(70, 500)])
    assert (found["num_same"], found["num_harmless"]) == (1, 1)


def test_ends_start_together_or_apart(generator):
    low, high = starts.random_start(False, generator)[0].ranges.widths
    torch.testing.assert_close(low, high)
    low, high = starts.random_start(True, generator)[0].ranges.widths
    assert (low - high).abs().max() > 0.1
