import torch

from orbitgp.features import Standardize
from tests.conftest import assert_close


def test_features_are_standard_and_constants_stay(generator):
    x = torch.randn(50, 3, 2, generator=generator, dtype=torch.float64) * 5 + 1e3
    x[:, 0, 0] = 7.0
    features = Standardize.of(x)(x)
    assert features.shape == (50, 6)
    assert_close(features.mean(0), torch.zeros(6).double(), tolerance=1e-9)
    assert_close(features.std(0, correction=0)[1:], torch.ones(5).double())
    assert (features[:, 0] == 0).all()
