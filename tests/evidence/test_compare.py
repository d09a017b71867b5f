"""Candidates are ranked by their evidence, on the same rows, draws and sizes."""

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, replace

import joblib
import numpy as np
import pytest
import torch
from scipy import stats

from experiments.intervals import rotated_points, rotation
from orbitgp import (
    FileError,
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    Rotation,
    SignFlips,
    compare,
    compose,
    coordinate_swap,
    load,
)
from orbitgp.evidence.comparison import Comparison
from orbitgp.evidence.fitted import FittedEvidence
from orbitgp.evidence.trials import Finding, read_finding, subset_sizes
from tests.conftest import QUICK

HERE = joblib.Parallel(n_jobs=1)
REGRESSOR = InvariantGPRegressor(settings=QUICK)


def even(num_data=40):
    """A function of two numbers that does not change if the first one changes its sign."""
    x = np.random.default_rng(0).uniform(-2, 2, (num_data, 2))
    return x, np.cos(x[:, 0]) * x[:, 1]


@pytest.fixture(scope="module")
def found():
    candidates = {"none": "none", "flip": SignFlips(0), "swap": coordinate_swap(0, 1, 2)}
    return compare(candidates, *even(), estimator=REGRESSOR, executor=HERE)


def test_the_true_invariance_has_the_most_evidence(found):
    assert found.findings[0].name == "flip"
    assert found.best_estimator.evidence_ == found.best.evidence
    difference, error = found.difference("none")
    assert difference < -10
    assert error == 0  # whole orbits have no draws
    assert found.difference("flip", "none")[0] == -difference


def test_tables(found):
    lines = str(found).splitlines()
    assert lines[0].split()[0] == "candidate"
    assert lines[1].startswith("flip")
    assert "best" in lines[1]
    frame = found.frame()
    assert list(frame.index) == [finding.name for finding in found.findings]
    assert frame.loc["none", "difference"] == found.difference("none")[0]
    assert frame.loc["none", "n=40"] == found.by_size()["none"][40]
    json.dumps(found.records())


def test_parts_of_the_data_and_units_of_the_targets():
    x, y = even(300)
    plain = compare(["none", SignFlips(0)], x, y, estimator=REGRESSOR, executor=HERE)
    assert list(plain.best.by_size) == [250, 300] == [*subset_sizes(300), 300]
    gaps = plain.by_size()["none"]
    assert gaps[300] < gaps[250] < 0
    scaled = compare(["none"], x, 1000 * y, estimator=REGRESSOR, executor=HERE).best
    assert scaled.by_size[250] == pytest.approx(
        plain["none"].by_size[250] - 250 * np.log(1000), abs=1e-3
    )


@pytest.mark.parametrize("likelihood", ["softmax"])
def test_parts_and_draws_have_the_likelihood_that_is_compared(likelihood):
    """All are bounds on log probabilities of labels, where densities may have any value."""
    x = np.random.default_rng(0).uniform(-2, 2, (260, 2))
    y = np.digitize(np.cos(2 * x[:, 0]) * x[:, 1], (-0.5, 0.5))
    estimator = InvariantGPClassifier(likelihood=likelihood, settings=QUICK)
    candidates = {"none": "none", "flip": SignFlips(0)}
    found = compare(candidates, x, y, estimator=estimator, executor=HERE)
    fitted = found.best_estimator
    assert len(fitted.model_.posterior.points) == 260
    for one in found.findings:
        assert (one.kind, one.likelihood) == ("bound", likelihood)
        assert list(one.by_size) == [250, 260]
        assert 250 * np.log(1 / 3) < one.by_size[250] < 0
        assert abs(one.by_size[250] / 250 - one.by_size[260] / 260) < 0.1
    # a group has no draws, and each input has a variable, as in the fit
    (of_all,) = found.best.by_draws
    assert of_all == pytest.approx(fitted.evidence_, rel=1e-3)
    assert likelihood in str(found).splitlines()[0]


def test_candidates_of_different_likelihoods_are_refused():
    x, y = even(20)
    candidates = {"a": {"likelihood": "softmax"}, "b": {"likelihood": "auto"}}
    with pytest.raises(InputError, match=r"same likelihood.*'a' has softmax, 'b' has gaussian"):
        compare(candidates, x, y > 0, executor=HERE)


def test_a_bound_does_not_end_a_curve_of_exact_evidence():
    x, y = even(300)
    candidates = [{"num_inducing": 30}, {"num_inducing": 60}]
    found = compare(candidates, x, y, estimator=REGRESSOR, executor=HERE)
    assert {one.kind for one in found.findings} == {"bound"}
    assert [list(row) for row in found.by_size().values()] == [[250], [250]]


def test_candidates_of_all_kinds_get_names():
    x, y = even(40)
    candidates = ["none", SignFlips(0), SignFlips(1), {"orbit": "none", "num_inducing": 20}]
    found = compare(candidates, x, y, estimator=REGRESSOR, executor=HERE)
    assert {finding.name for finding in found.findings} == {
        *("none", "SignFlips", "SignFlips #2", "none, 20")
    }
    assert found["none, 20"].kind == "bound"


def test_the_task_is_that_of_the_labels():
    x, y = even(20)
    classes = compare(["none"], x, y > 0, executor=HERE).best_estimator
    assert isinstance(classes, InvariantGPClassifier)
    assert isinstance(compare(["none"], x, y, executor=HERE).best_estimator, InvariantGPRegressor)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "there is no candidate"),
        (("affine",), "a mapping of names to candidates, or a list"),
        (([{"orbit": "none", "depth": 3}],), "has no parameter depth"),
    ],
)
def test_candidates_that_cannot_be_used(arguments, message):
    with pytest.raises(InputError, match=message):
        compare(*arguments, *even(10), executor=HERE)


def test_other_arguments_that_cannot_be_used(found):
    with pytest.raises(InputError, match="executor must have a method submit"):
        compare(["none"], *even(10), executor=4)
    with pytest.raises(InputError, match="estimator must be an InvariantGPClassifier"):
        compare(["none"], *even(10), estimator="svm", executor=HERE)
    with pytest.raises(InputError, match="no candidate is called 'turn'; there are"):
        found["turn"]


def test_executors_find_the_same(found):
    candidates = {"none": "none", "flip": SignFlips(0)}
    with ThreadPoolExecutor(1) as threads:
        other = compare(candidates, *even(), estimator=REGRESSOR, executor=threads)
    for name in candidates:
        assert other[name].evidence == pytest.approx(found[name].evidence, abs=1e-6)


def test_local_processes_share_the_work(found, capsys):
    """The default; functions of this file are sent along."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.cpu_count", lambda: 2)
        other = compare(
            {"none": "none", "flip": SignFlips(0)}, *even(), estimator=REGRESSOR, verbose=True
        )
    assert other.best.evidence == pytest.approx(found.best.evidence, abs=1e-6)
    assert "2 of 2" in capsys.readouterr().err


def test_new_interpreters_find_the_same(found):
    """As processes begin on Windows and macOS: nothing is there that was not sent."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as processes:
        other = compare(["none"], *even(), estimator=REGRESSOR, executor=processes)
    assert other["none"].evidence == pytest.approx(found["none"].evidence, abs=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray's own
def test_a_local_ray_finds_the_same(found):
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True)
    try:
        register_ray()
        with joblib.parallel_config(backend="ray"):
            candidates = {"none": "none", "flip": SignFlips(0)}
            executor = joblib.Parallel(n_jobs=2)
            other = compare(candidates, *even(), estimator=REGRESSOR, executor=executor)
    finally:
        ray.shutdown()
    for name in candidates:
        assert other[name].evidence == pytest.approx(found[name].evidence, abs=1e-6)


def test_a_comparison_goes_on_where_it_stood(tmp_path, monkeypatch):
    candidates = {"none": "none", "flip of 0/1": SignFlips(0)}
    options = {"estimator": REGRESSOR, "executor": HERE, "run": tmp_path}
    first = compare(candidates, *even(), **options)
    assert load(tmp_path / "flip_of_0_1").evidence_ == first.best.evidence
    monkeypatch.setattr("orbitgp.evidence.trials.finding_of", lambda *_: pytest.fail("asked again"))
    again = compare(candidates, *even(), **options)
    assert again.records() == first.records()
    kept = tmp_path / "none" / "finding.json"
    found = json.loads(kept.read_text(encoding="utf-8"))
    wrong = ({"by_draws": []}, {"ranges": {"rotation (°)": [1, 2]}})
    for text in ("{}", *(json.dumps(found | change) for change in wrong)):
        kept.write_text(text)
        with pytest.raises(FileError, match="delete it to compute it again"):
            compare(candidates, *even(), **options)


def test_findings_keep_their_ranges(tmp_path):
    ranges = compose(Rotation(-0.1, 0.1), Rotation(-0.2, 0.2)).learned_ranges()
    about = {"likelihood": "gaussian", "num_data": 300, "learned": "words", "seconds": 1.0}
    known = {"ranges": ranges, "by_draws": (1.0,), "by_size": {250: -1.0}}
    kept = Finding("turned twice", -1.0, 0.1, "exact", **about, **known)
    (tmp_path / "finding.json").write_text(json.dumps(asdict(kept)), encoding="utf-8")
    assert read_finding(tmp_path / "finding.json") == kept


def test_errors_of_differences_are_those_of_draws():
    """z-scores over sets of draws that the error was not computed from pass a KS test."""
    x, y = rotated_points(20, 0.5, seed=0)
    models = [
        InvariantGPRegressor(rotation(half), settings=QUICK, random_state=0).fit(x, y)
        for half in (0.2, 0.6)
    ]
    models[0].model_.orbit.ranges.assign_widths(torch.full((1, 1), 0.3))
    differences = []
    for seed in range(25):
        draws = [
            FittedEvidence(m, x, y, generator=torch.Generator().manual_seed(seed)).by_draws()
            for m in models
        ]
        differences.append(np.subtract(*draws))
    differences = np.array(differences)
    errors = differences[:, 1:].std(1, ddof=1)
    z = (differences[:, 0] - differences.mean()) / errors
    print(f"mean error {errors.mean():.3f} nats, spread of z {z.std():.2f}")
    assert errors.min() > 0
    assert stats.kstest(z, stats.t(df=6).cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("kinds", "sign"), [(("exact", "bound"), "≥ −5"), (("bound", "exact"), "≤ −5")]
)
def test_a_bound_may_have_more_evidence_than_it_says(kinds, sign):
    about = {"likelihood": "gaussian", "num_data": 100, "learned": "", "ranges": (), "seconds": 1}
    found = [
        Finding(name, evidence, 1.0, kind, **about, by_draws=(1.0, 2.0), by_size={})
        for name, evidence, kind in zip("ab", (10.0, 5.0), kinds, strict=True)
    ]
    assert sign in str(Comparison(found, 100))
    same = [replace(one, kind="bound") for one in found]
    assert sign[:2] not in str(Comparison(same, 100))
