"""What is known of the processor, and what follows from it."""

from unittest import mock

import pytest
import torch

from orbitgp import RBF
from orbitgp.kernels import coarse_sums
from orbitgp.processor import multiplies_bfloat16, processor_name
from tests.conftest import assert_close


@pytest.fixture
def told():
    """Have PyTorch say this of the processor."""
    patches = []

    def tell(capabilities):
        patch = mock.patch.object(
            torch.cpu, "get_capabilities", create=True, return_value=capabilities
        )
        patches.append(patch)
        patch.start()
        multiplies_bfloat16.cache_clear()

    yield tell
    for patch in patches:
        patch.stop()
    multiplies_bfloat16.cache_clear()


def test_the_processor_says_whether_it_multiplies_bfloat16(told):
    told({"cpu_name": "One", "amx_bf16": True})
    assert multiplies_bfloat16()
    assert processor_name() == "One"
    told({"amx_bf16": False})
    assert not multiplies_bfloat16()
    assert processor_name() != "One"


def test_an_older_pytorch_cannot_tell(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    multiplies_bfloat16.cache_clear()
    assert not multiplies_bfloat16()
    assert processor_name()
    multiplies_bfloat16.cache_clear()


@pytest.mark.parametrize("units", [True, False])
def test_products_are_coarse_only_where_that_is_faster(told, units, generator):
    told({"amx_bf16": units})
    x = torch.rand(5, 1, 50, generator=generator, dtype=torch.float32)
    kernel, seen, addmm = RBF(0.7, 2.0, coarse=True), [], torch.addmm

    def watched(*args, **kwargs):
        seen.append(torch.get_float32_matmul_precision())
        return addmm(*args, **kwargs)

    with torch.no_grad(), mock.patch("torch.addmm", watched):
        sums = coarse_sums(kernel, x, x, 1)
    assert set(seen) == {"medium" if units else "highest"}
    points = x.bfloat16().double().flatten(1)
    exact = 0.7 * torch.exp(-0.125 * torch.cdist(points, points).square())
    assert_close(sums[:, 0].double(), exact, tolerance=1e-5)
