"""Estimators that learn from streams: the same model whatever is in memory."""

import numpy as np
import pytest

import orbitgp.estimators.survey as surveys
from orbitgp import Callback, InputError, InvariantGPClassifier, InvariantGPRegressor
from orbitgp.data.stream import ArrayStream, Batch, Stream
from orbitgp.distributed.group import ALONE
from orbitgp.estimators.survey import Survey, merge, survey, survey_batches
from tests.conftest import QUICK
from tests.files.crash import bars


def many(num_data=900):
    images, labels = bars(num_data)
    return images, np.array(["a", "b", "c"])[labels]


class Counting(Stream):
    """Counts the examples that are asked for."""

    def __init__(self, stream):
        self.stream, self.passes = stream, []

    def batches(self, rank=0, world_size=1):
        self.passes.append(0)
        for batch in self.stream.batches(rank, world_size):
            self.passes[-1] += len(batch.x)
            yield batch


def test_surveys_of_parts_make_the_survey_of_the_whole(monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLE_SIZE", 100)
    x, y = np.arange(1000.0)[:, None], np.arange(1000.0) ** 2
    stream = ArrayStream(x, y, 30)
    whole = survey(stream, ALONE, classify=False, seed=5)
    parts = [survey_batches(stream.batches(rank, 3), classify=False, seed=5) for rank in range(3)]
    for other in (merge(parts), merge(parts[::-1]), Survey.from_bytes(whole.to_bytes())):
        for name in ("keys", "x", "y"):
            np.testing.assert_array_equal(getattr(other, name), getattr(whole, name))
        np.testing.assert_allclose(other.mean, y.mean(), rtol=1e-12)
        np.testing.assert_allclose(other.squares, ((y - y.mean()) ** 2).sum(), rtol=1e-12)
        assert (other.num_data, other.largest) == (1000, 999)
    assert len(set(whole.x[:, 0])) == len(whole.x) == 100
    # uniform over all: the mean rank of 100 of 1000 has a standard error of 27.4
    z = (whole.x.mean() - 499.5) / (1000 / np.sqrt(12 * 100) * np.sqrt(0.9))
    assert abs(z) < 4


def test_seeds_draw_different_samples_of_a_stream(monkeypatch):
    """So that the spread over seeds measures the choice of the sample, too."""
    monkeypatch.setattr(surveys, "SAMPLE_SIZE", 50)
    images, labels = many(200)
    samples = []
    for seed in (0, 0, 1):
        model = InvariantGPClassifier(settings=QUICK, num_inducing=5, random_state=seed)
        monkeypatch.setattr(model, "_fit", lambda X, *_: samples.append(X))
        model.fit_stream(ArrayStream(images, labels, 64))
    assert all(len(sample) == 50 for sample in samples)
    np.testing.assert_array_equal(samples[0], samples[1])
    assert len({row.tobytes() for row in np.concatenate(samples[1:])}) > 75


@pytest.mark.parametrize("seed", [None, 3])
def test_a_stopped_stream_goes_on_with_its_own_sample(monkeypatch, tmp_path, seed):
    """Also without a seed of the user's: the folder keeps the one that was drawn."""
    monkeypatch.setattr(surveys, "SAMPLE_SIZE", 50)
    np.random.seed(0)  # noqa: NPY002 - where no seed is given, scikit-learn draws it from here
    images, labels = many(200)

    def model(*callbacks):
        given = {"num_inducing": 20, "random_state": seed, "run": tmp_path / "run"}
        return InvariantGPClassifier("rotation", settings=QUICK, callbacks=callbacks, **given)

    with pytest.raises(RuntimeError, match="stopped"):
        model(Stop()).fit_stream(ArrayStream(images, labels, 64))
    resumed = model().fit_stream(ArrayStream(images, labels, 64))
    again = model(Stop()).fit_stream(ArrayStream(images, labels, 64))  # read back: no step
    assert again.evidence_ == resumed.evidence_


class Stop(Callback):
    def stepped(self, step):
        raise RuntimeError("stopped")


def test_labels_of_all_batches_are_classes(monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLE_SIZE", 4)
    labels = np.array(["x"] * 40 + ["rare"] * 1 + ["y"] * 40)
    found = survey(ArrayStream(np.zeros((81, 2)), labels, 10), ALONE, classify=True, seed=5)
    assert found.labels.tolist() == ["rare", "x", "y"]
    assert len(found.x) == 4


@pytest.mark.usefixtures("untyped")
def test_a_classifier_learns_from_a_stream(monkeypatch):
    """With a third of the data in memory it is about as good as with all of them."""
    images, labels = many()
    test_images, test_labels = images[600:], labels[600:]
    monkeypatch.setattr(surveys, "SAMPLE_SIZE", 200)
    stream = Counting(ArrayStream(images[:600], labels[:600], 64))
    parameters = {"settings": QUICK, "num_inducing": 100, "random_state": 0}
    streamed = InvariantGPClassifier("affine", **parameters).fit_stream(stream)
    memory = InvariantGPClassifier("affine", **parameters).fit(images[:600], labels[:600])
    assert stream.passes == [600] * 2  # the survey, and the pass of the solve
    scores = [model.score(test_images, test_labels) for model in (streamed, memory)]
    assert min(scores) > 0.9
    assert streamed.evidence_ == pytest.approx(memory.evidence_, rel=0.2)


def test_a_regressor_learns_from_a_stream():
    random = np.random.default_rng(0)
    x = random.normal(size=(500, 3))
    y = np.stack([np.sin(x[:, 0]), 100 + 10 * x[:, 1]], 1)
    model = InvariantGPRegressor(settings=QUICK, num_inducing=100, random_state=0)
    model.fit_stream(ArrayStream(x[:400], y[:400], 100))
    assert model.score(x[400:], y[400:]) > 0.9
    np.testing.assert_allclose(model.target_mean_, y[:400].mean(0))
    np.testing.assert_allclose(model.target_scale_, y[:400].std(0))


class Broken(Stream):
    """Gives other examples from the second pass on."""

    def __init__(self, change):
        self.change, self.count = change, 0

    def batches(self, rank=0, world_size=1):
        self.count += 1
        images, labels = many(60)
        batch = Batch(images, labels, 0)
        yield batch if self.count == 1 else self.change(batch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: Batch(b.x[:-1], b.y[:-1], 0), "a pass gave 59 examples where there are 60"),
        (lambda b: Batch(b.x, np.full(60, "zz"), 0), "was not there in the first pass"),
        (lambda b: Batch(b.x[:, 1:], b.y, 0), "inputs of shape"),
        (lambda b: Batch(b.x * np.nan, b.y, 0), "finite"),
    ],
    ids=["fewer", "labels", "shape", "nan"],
)
def test_a_stream_that_changes_is_refused(change, message):
    model = InvariantGPClassifier(settings=QUICK, num_inducing=20, random_state=0)
    with pytest.raises(InputError, match=message):
        model.fit_stream(Broken(change))


def test_an_empty_stream_is_refused():
    with pytest.raises(InputError, match="no examples"):
        survey(ArrayStream(np.zeros((0, 2)), np.zeros(0), 5), ALONE, classify=True, seed=5)


@pytest.mark.filterwarnings("ignore:nothing was learned")  # by 2 points
def test_half_of_the_sample_of_a_long_stream_has_variables(monkeypatch):
    """The others tell what is left unexplained."""
    monkeypatch.setattr(surveys, "SAMPLE_SIZE", 50)
    images, labels = many(400)
    model = InvariantGPClassifier(settings=QUICK, budget_seconds=1e-6, random_state=0)
    model.fit_stream(ArrayStream(images, labels, 100))
    assert len(model.model_.posterior.points) == 25
    few = InvariantGPClassifier(settings=QUICK, num_inducing=2, random_state=0)
    few.fit_stream(ArrayStream(images, labels, 100))  # 2 / 400 of 50 would be no point at all
    assert len(few.model_.posterior.points) == 2


@pytest.mark.parametrize("where", [0, 3])
def test_values_that_are_not_finite_are_found_before_any_work(where):
    images, labels = many(60)
    images[where * 16, 0, 0] = np.nan
    with pytest.raises(InputError, match=f"batch {where} has values that are not finite"):
        InvariantGPClassifier().fit_stream(ArrayStream(images, labels, 16))


def test_labels_may_be_a_column():
    images, labels = many(60)
    model = InvariantGPClassifier(settings=QUICK, num_inducing=20, random_state=0)
    model.fit_stream(ArrayStream(images, labels[:, None], 16))
    assert model.classes_.tolist() == ["a", "b", "c"]
