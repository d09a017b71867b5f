"""Data sets of Hugging Face, without the network."""

import os

import numpy as np
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
datasets = pytest.importorskip("datasets")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from PIL import Image  # noqa: E402

from orbitgp import InputError  # noqa: E402
from orbitgp.data.huggingface import HuggingFaceStream  # noqa: E402
from orbitgp.data.recognise import stream_of  # noqa: E402
from tests.data.test_streams import arrays, assert_covered  # noqa: E402


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(1, 35), st.integers(1, 4))
def test_rows_are_covered(count, batch_size, world_size):
    x, y = arrays(count)
    dataset = datasets.Dataset.from_dict({"x": x.tolist(), "label": y})
    stream = HuggingFaceStream(dataset, "x", "label", batch_size)
    assert_covered(stream, count, world_size, batch_size)


def test_doubles_stay_doubles_and_names_stay_names():
    dataset = datasets.Dataset.from_dict({"x": [[0.1, 0.2]], "target": [1 / 3]})
    batch = next(stream_of(dataset).batches())
    assert batch.x.dtype == batch.y.dtype == np.float64
    assert batch.y.tolist() == [1 / 3]
    words = datasets.Dataset.from_dict({"x": [1.0, 2.0], "label": ["cat", "mouse"]})
    assert next(stream_of(words).batches()).y.tolist() == ["cat", "mouse"]


def test_pictures():
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    columns = {"image": [Image.fromarray(picture)] * 3, "label": [0, 1, 2]}
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    dataset = datasets.Dataset.from_dict(columns, features=features)
    batches = list(stream_of(dataset, batch_size=2).batches())
    assert [batch.x.shape for batch in batches] == [(2, 3, 2, 4), (1, 3, 2, 4)]
    np.testing.assert_array_equal(batches[0].x[0], picture.transpose(2, 0, 1))


def test_what_cannot_be_a_stream():
    dataset = datasets.Dataset.from_dict({"a": [[1], [1, 2]], "b": [1, 2]})
    with pytest.raises(InputError, match="name input and label"):
        stream_of(dataset)
    with pytest.raises(InputError, match="no column is called 'c'; there are a, b"):
        HuggingFaceStream(dataset, "c", "b", 2)
    with pytest.raises(InputError, match="choose a split"):
        stream_of(datasets.DatasetDict(train=dataset))
    with pytest.raises(InputError, match=r"expected a datasets\.Dataset"):
        HuggingFaceStream([1], "a", "b", 2)
    with pytest.raises(InputError, match="column 'a', row 1 has shape"):
        list(HuggingFaceStream(dataset, "a", "b", 2).batches())
