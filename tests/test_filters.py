"""Filters and their hand-written gradient."""

import torch
from torch.nn.functional import conv2d

from orbitgp.filters import filtered
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


def test_filters_have_second_derivatives(generator):
    images, kernel = (torch.randn(s, generator=generator) for s in ((1, 1, 3, 4), (2, 1, 3, 3)))
    images = images.double().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: filtered(x, kernel.double()).pow(3), images)
