"""The loop: what it learns, how it stops, and how its guards act."""

import io
import json
import sys

import numpy as np
import pytest
import torch

from orbitgp import RBF, Affine, Gaussian, InducingPosterior, InputError, InvariantGP
from orbitgp import TrainingSettings as Settings
from orbitgp.errors import NumericalError
from orbitgp.model import mean_pairs
from orbitgp.orbits.names import NAMES, starting_orbits
from orbitgp.training.callbacks import Callback, JsonlLog, ProgressBar, Several
from orbitgp.training.group import ALONE
from orbitgp.training.loop import Training, train
from orbitgp.training.passes import Resident, pass_statistics
from orbitgp.training.rescaling import fresh_draws, highest_bound, rescaled, with_scales
from orbitgp.training.solving import Solved, affordable_points, evidence, solve_large
from orbitgp.training.starts import initial_model, with_orbit

pytestmark = pytest.mark.usefixtures("float64")


def training(generator, **settings):
    """Images whose value is their brightness, whatever their place."""
    x = torch.rand(60, 6, 6, generator=generator)
    y = x.mean((1, 2), keepdim=False)
    y = (y - y.mean()) / y.std()
    model = InvariantGP(
        orbit=Affine(-0.1, 0.1),
        kernel=RBF(1.0, 2.0),
        posterior=InducingPosterior(x.flatten(1)[:30], 1),
        likelihood=Gaussian(0.2),
    )
    chosen = Settings(**{"max_steps": 40, "evaluate_every": 10, **settings})
    return Training(model, x, y, settings=chosen, generator=generator)


class Recorder(Callback):
    def __init__(self):
        self.warnings, self.evaluations, self.reason = [], [], None

    def evaluated(self, evaluation):
        self.evaluations.append(evaluation)

    def warned(self, message):
        self.warnings.append(message)

    def finished(self, reason):
        self.reason = reason


def test_training_raises_the_bound_and_keeps_the_best(generator):
    run, recorder = training(generator), Recorder()
    reason = train(run, recorder)
    assert reason == recorder.reason == "the largest number of steps was reached"
    values = [evaluation.elbo for evaluation in recorder.evaluations]
    assert max(values) > values[0] + 1
    assert run._elbo_now()[1] >= max(values) - 1e-6
    assert "rotation" in recorder.evaluations[-1].learned


def test_the_same_generator_gives_the_same_run():
    runs = [training(torch.Generator().manual_seed(2)) for _ in range(2)]
    for run in runs:
        train(run, Callback())
    first, second = (run.model.state_dict() for run in runs)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_settled_evidence_stops_the_run(generator):
    run = training(generator, max_steps=1000, learning_rate=1e-9, patience=1)
    assert train(run, Callback()) == "the evidence has settled"
    assert run.step < 100


def test_the_step_rises_then_falls_in_the_second_half_and_the_last_one_is_judged(generator):
    run, sizes = training(generator, max_steps=20, patience=99), []

    class Sizes(Callback):
        def stepped(self, step):
            sizes.append(run.optimizer.param_groups[0]["lr"] / run.settings.learning_rate)

    train(run, Sizes())
    rising, falling = [k / 10 for k in range(1, 11)], [k / 10 for k in range(10, 0, -1)]
    np.testing.assert_allclose(sizes, rising + falling)
    assert [evaluation.step for evaluation in run.curve] == [0, 10, 20]
    best = max(evaluation.elbo for evaluation in run.curve)
    assert run.best[2] == best
    kept = run.best[0]
    assert all(torch.equal(value, kept[name]) for name, value in run.model.state_dict().items())


def test_a_runaway_is_seen_explained_and_undone(generator):
    run, recorder = training(generator, max_steps=200), Recorder()

    class Saboteur(Recorder):
        def stepped(self, step):
            if step in (15, 35, 55):  # ranges blown up behind the loop's back
                run.model.orbit.ranges.raw.data.fill_(3.0)

    recorder = Saboteur()
    reason = train(run, recorder)
    assert "3 times; the best model was kept" in reason
    assert len(recorder.warnings) == 3
    assert "runaway" in recorder.warnings[0]
    assert run.model.orbit.ranges.widths.max() < 1
    assert run.rate < run.settings.learning_rate


def test_steps_that_were_too_long_are_undone_without_a_word(generator):
    run = training(generator, max_steps=200)

    class Saboteur(Recorder):
        def stepped(self, step):
            if step == 20:
                run.model.kernel.lengthscale = 0.01

    recorder = Saboteur()
    train(run, recorder)
    assert run.recoveries >= 1
    assert not recorder.warnings
    assert run.model.kernel.lengthscale > 0.1


def test_a_numerical_failure_is_recovered_from_or_raised(generator):
    run = training(generator)
    with torch.no_grad():
        run.model.kernel.raw_variance.fill_(torch.nan)
    with pytest.raises(NumericalError, match="finite"):
        train(run, Callback())

    run = training(generator)

    class Saboteur(Recorder):
        def stepped(self, step):
            if step == 12:
                run.model.kernel.raw_variance.data.fill_(torch.nan)

    recorder = Saboteur()
    train(run, recorder)
    assert "not finite" in recorder.warnings[0]
    run.model.kernel.raw_variance.data.fill_(torch.nan)
    run.finish()
    assert torch.isfinite(run.model.kernel.variance).all()


def test_ctrl_c_leaves_a_usable_model(generator):
    run = training(generator)

    class Impatient(Recorder):
        def stepped(self, step):
            if step == 13:
                raise KeyboardInterrupt

    assert "interrupted" in train(run, Impatient())
    assert run.step == 13
    assert torch.isfinite(run.model.predict(run.x, num_samples=4, generator=generator).mean).all()


def test_log_lines_are_json(tmp_path, generator, capfd):
    path = tmp_path / "log.jsonl"
    train(training(generator), Several((JsonlLog(path), ProgressBar(), Callback())))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["started", *["evaluated"] * 5, "finished"]
    assert lines[1]["elbo"] < max(line["elbo"] for line in lines[1:-1])
    (line,) = capfd.readouterr().err.splitlines()  # not a terminal: no more than one in 30 s
    assert line.startswith("step 0: evidence ")
    assert line.endswith(lines[1]["learned"])


class Stream(io.StringIO):
    """Where a bar can be drawn."""


@pytest.mark.parametrize("module", ["ipykernel.iostream", "elsewhere"])
def test_a_notebook_shows_the_bar_as_a_terminal_does(generator, monkeypatch, module):
    monkeypatch.setattr(Stream, "__module__", module)
    monkeypatch.setattr("sys.stderr", Stream())
    bar = ProgressBar()
    bar.announced("so many inducing points")
    train(training(generator), bar)
    first, *rest = sys.stderr.getvalue().splitlines()
    assert first == "so many inducing points"
    assert ("100%|" in rest[-1]) == (module != "elsewhere")


def test_settings_are_checked():
    with pytest.raises(InputError, match="positive"):
        Settings(max_steps=0)
    with pytest.raises(InputError, match="even"):
        Settings(num_samples=3)


def test_every_name_has_its_starts():
    for name in NAMES:
        assert all(orbit.describe() for orbit in starting_orbits(name))
    own = Affine(-0.3, 0.3)
    (start,) = starting_orbits(own)
    assert start is not own
    assert start.describe() == own.describe()


def test_starts_do_not_touch_each_other(generator):
    """What one start learns of noise and features is not where the next one begins."""
    x, likelihood = torch.rand(20, 6, 6, generator=generator), Gaussian(0.2)
    features = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3))
    first = initial_model(
        Affine(-0.1, 0.1),
        likelihood,
        x,
        num_outputs=1,
        num_points=10,
        feature_map=features,
        variance=1.0,
        generator=generator,
    )
    models = [first, with_orbit(first, Affine(-0.3, 0.3))]
    assert torch.equal(*(model.posterior.points for model in models))
    assert models[1].orbit.describe() != first.orbit.describe()
    before = {name: value.clone() for name, value in models[1].state_dict().items()}
    run = Training(models[0], x, x[:, 0, 0], settings=Settings(), generator=generator)
    for _ in range(3):
        run.advance(Callback())
    assert models[0].likelihood.noise != likelihood.noise
    assert all(torch.equal(value, before[n]) for n, value in models[1].state_dict().items())


def test_budgets_choose_the_number_of_points():
    sizes = [
        affordable_points(10_000, 784, num_averaged=4, seconds=seconds, memory=1e10)
        for seconds in (1, 10, 100)
    ]
    assert sizes[0] < sizes[1] < sizes[2]
    limits = {"seconds": 1e9, "memory": 64 * 1000**2}
    assert affordable_points(100, 2, num_averaged=1, **limits) == 1000


def small_solution(run):
    """A trained model as stage two would hold it."""
    prior = run.model.posterior.prior_covariance(run.model.kernel).detach()
    draws = {"num_samples": 8, "weigh": mean_pairs, "seed": 1, "group": ALONE}
    statistics = pass_statistics(run.model, Resident(run.x, run.y), **draws)
    return Solved(run.model, statistics, prior, torch.linalg.cholesky(prior), seed=1)


def repeated(solved, everything, generator):
    """The mean of some estimates, and its standard error."""
    values = torch.tensor(
        [
            evidence(solved.model, solved.prior_factor, everything, generator=generator)[0]
            for _ in range(20)
        ]
    )
    return values.mean().item(), values.std().item() / 20**0.5


def test_stage_two_has_more_evidence(generator):
    run = training(generator)
    train(run, Callback())
    everything = Resident(run.x, run.y)
    small = repeated(small_solution(run), everything, generator)
    rows = torch.randperm(60, generator=generator)
    large = solve_large(run.model, everything, rows, num_averaged=8, generator=generator)
    fresh = fresh_draws(large, run.x, run.y, generator=generator)
    scales = highest_bound(large, fresh, rescaled(large, fresh, 1.0, 60), 60)
    value, error = repeated(with_scales(large, scales), everything, generator)
    print(f"M = 30: {small[0]:.1f} ± {small[1]:.1f} nats; M = 60: {value:.1f} ± {error:.1f}")
    assert value > small[0] + 4 * (error + small[1])


@pytest.mark.parametrize("num_variances", [20, 60])
def test_evidence_errors_are_the_spread_of_repeated_estimates(
    generator, num_variances, monkeypatch
):
    """Of draws, and of the data that stand for all where variances are counted."""
    monkeypatch.setattr("orbitgp.training.solving.NUM_VARIANCES", num_variances)
    run = training(generator)
    run.refresh()
    solved, everything = small_solution(run), Resident(run.x, run.y)
    values, errors = torch.tensor(
        [
            evidence(solved.model, solved.prior_factor, everything, generator=generator)
            for _ in range(60)
        ]
    ).T
    spread, claimed = values.std().item(), errors.square().mean().sqrt().item()
    print(f"spread {spread:.3f}, claimed {claimed:.3f}")
    # χ with 59 degrees of freedom: 4 standard errors of the spread are 4 · spread / √118
    assert abs(spread - claimed) < 4 * spread / 118**0.5 + 4 * errors.std().item() / 60**0.5
