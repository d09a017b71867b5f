"""Filters and their hand-written gradient."""

import pytest
import torch
from torch.nn.functional import conv2d, relu

from orbitgp.filters import energy, filtered
from tests.conftest import assert_close


def test_filters_and_their_gradient_are_those_of_a_convolution(generator):
    shapes = ((3, 1, 5, 7), (4, 1, 3, 3), (3, 4, 5, 7))
    images, kernel, slopes = (torch.randn(s, generator=generator) for s in shapes)
    found, gradients = [], []
    for function in (filtered, lambda x, w: conv2d(x, w, padding=1)):
        x = images.clone().requires_grad_()
        found.append(function(x, kernel))
        gradients.append(torch.autograd.grad(found[-1], x, slopes)[0])
    assert_close(*found)
    assert_close(*gradients)


@pytest.mark.parametrize("power", [1.0, 1.5, 3.0])
def test_energy_and_its_gradient_are_those_of_plain_operations(generator, power):
    shapes = ((3, 1, 5, 7), (4, 1, 3, 3), (3, 4, 5, 7))
    images, kernel, slopes = (torch.randn(s, generator=generator) for s in shapes)
    found, gradients = [], []
    for function in (energy, lambda x, w, p: relu(conv2d(x, w, padding=1)).pow(p)):
        x = images.clone().requires_grad_()
        found.append(function(x, kernel, power))
        gradients.append(torch.autograd.grad(found[-1], x, slopes)[0])
    assert (found[0] == 0).any()
    assert_close(*found)
    assert_close(*gradients)


def test_energy_has_second_derivatives(generator):
    images, kernel = (torch.randn(s, generator=generator) for s in ((1, 1, 3, 4), (2, 1, 3, 3)))
    images = images.double().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: energy(x, kernel.double(), 3.0), images)


def test_filters_have_second_derivatives(generator):
    images, kernel = (torch.randn(s, generator=generator) for s in ((1, 1, 3, 4), (2, 1, 3, 3)))
    images = images.double().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: filtered(x, kernel.double()).pow(3), images)
