"""Unbiased estimates of double means over an orbit, from one set of samples (vdW 2018, App. B).

Samples come in B groups of G (S = B G). A pair has the weight `within` = b if it shares a group and
`across` = a if it does not, so that with group sums h_g = Σ_{s in g} h_s every product form is

    Σ_st w_st h_s h_t  =  a (Σ_g h_g)² + (b − a) Σ_g h_g²,

at the price of B, not S, vectors for each input. G = 1 is the estimator of the paper.
"""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.values import PairWeights

STRIPS = 8
"""Parts that a symmetric matrix is computed in: (STRIPS + 1) / (2 STRIPS) of the work of all."""

STRIP = 1024
"""Columns that are mirrored at a time."""


def pair_weights(
    num_samples: int, *, orbit_size: float = math.inf, group_size: int = 1
) -> PairWeights:
    """Weights with E[Σ_st w_st r(x_s, x_t)] = E_{a,a'} r(x_a, x_a').

        a = (P − G) / (P S (S − G)),    b = 1 / (P S)

    P = ∞ is a distribution (b = 0), S < P a subset drawn without replacement in random order,
    S = P the whole orbit (1/P² for all: exact). For G = 1: vdW 2018, App. B (8) over P², and (15).
    """
    if group_size < 1 or num_samples < 1 or num_samples % group_size:
        raise InputError(
            f"{num_samples} orbit samples do not divide into groups of {group_size}; "
            "choose a group size that divides the number of samples"
        )
    if num_samples > orbit_size:
        raise InputError(
            f"{num_samples} different samples asked of an orbit of {orbit_size:.0f} points; "
            f"ask for at most {orbit_size:.0f}"
        )
    within = 1 / (orbit_size * num_samples)
    if num_samples == orbit_size:
        return PairWeights(within, within, group_size)
    if num_samples == group_size:
        raise InputError(
            f"{num_samples} orbit samples in one group leave no pair to average over; an unbiased "
            "estimate needs two groups: draw at least 2 samples, or use a smaller group size"
        )
    fraction = 1 - group_size / orbit_size  # (P − G) / P, finite also for P = ∞
    across = fraction / (num_samples * (num_samples - group_size))
    return PairWeights(across, within, group_size)


def mean_weights(num_samples: int) -> PairWeights:
    """Weights 1/S² for every pair: r averaged over the samples as if they were the whole orbit.

    Biased by O(1/S) unless they are, but positive semi-definite in every product form.
    """
    return PairWeights(1 / num_samples**2, 1 / num_samples**2, num_samples)


def group_sums(samples: Float[Tensor, "N S K"], group_size: int) -> Float[Tensor, "N B K"]:
    """h_g = Σ_{s in g} h_s, in float64 from here on."""
    return samples.unflatten(1, (-1, group_size)).sum(2).double()


def pair_mean(pairs: Float[Tensor, "N S S"], weights: PairWeights) -> Float[Tensor, "N"]:
    """Σ_st w_st r_st for a pair function r given on all pairs."""
    blocks = pairs.double().unflatten(2, (-1, weights.group_size)).sum(-1)
    return _weighted_blocks(blocks.unflatten(1, (-1, weights.group_size)).sum(2), weights)


def _weighted_blocks(blocks: Float[Tensor, "N B B"], weights: PairWeights) -> Float[Tensor, "N"]:
    """Σ_gh w_gh r_gh for r summed over the pairs of two groups."""
    shared = blocks.diagonal(dim1=1, dim2=2).sum(-1)
    return weights.across * blocks.sum((1, 2)) + (weights.within - weights.across) * shared


def pair_mean_of_inner(groups: Float[Tensor, "N B K"], weights: PairWeights) -> Float[Tensor, "N"]:
    """Σ_st w_st h_s·h_t from group sums."""
    return _weighted_blocks(groups @ groups.mT, weights)


def pair_mean_of_products(
    groups: Float[Tensor, "N B K"], weights: PairWeights
) -> Float[Tensor, "N K"]:
    """Σ_st w_st h_s h_t, coordinate by coordinate, from group sums."""
    total = groups.sum(1)
    return weights.across * total**2 + (weights.within - weights.across) * (groups**2).sum(1)


def pair_gram(
    groups: Float[Tensor, "N B M"], precision: Float[Tensor, "N R"], weights: PairWeights
) -> Float[Tensor, "R M M"]:
    """Σ_n λ_n Σ_st w_st k_s k_tᵀ from group sums, one matrix for each column of λ."""
    rows, partners = groups.flatten(0, 1), _partners(groups, weights)
    return torch.stack([_weighted(partners, column).mT @ rows for column in precision.mT])


def add_pair_gram_(
    total: Float[Tensor, "R M M"],
    groups: Float[Tensor, "N B M"],
    precision: Float[Tensor, "N R"],
    weights: PairWeights,
) -> None:
    """`total += pair_gram(...)` in place, for streams, but for the upper triangle.

    The gram is symmetric, so about half of it is computed; `mirror_` fills in the other half.
    """
    rows, partners = groups.flatten(0, 1), _partners(groups, weights)
    ends = torch.linspace(0, rows.shape[1], STRIPS + 1).long().tolist()
    for matrix, column in zip(total, precision.mT, strict=True):
        weighted = _weighted(partners, column)
        for start, end in itertools.pairwise(ends):
            matrix[start:end, :end].addmm_(weighted[:, start:end].mT, rows[:, :end])


def mirror_(matrices: Float[Tensor, "R M M"]) -> None:
    """The lower triangles, copied to the upper ones."""
    for matrix in matrices:
        for start in range(0, len(matrix), STRIP):
            end = start + STRIP
            matrix[:start, start:end] = matrix[start:end, :start].mT
            square = matrix[start:end, start:end]
            square.copy_(square.tril() + square.tril(-1).mT)


def _partners(groups: Float[Tensor, "N B M"], weights: PairWeights) -> Float[Tensor, "N B M"]:
    """h_g = b k_g + a Σ_{g' ≠ g} k_g', so that Σ_st w_st k_s k_tᵀ = Σ_g h_g k_gᵀ: N·B rows."""
    if groups.shape[1] == 1:
        return weights.within * groups
    others = groups.sum(1, keepdim=True) - groups
    return weights.within * groups + weights.across * others


def _weighted(
    partners: Float[Tensor, "N B M"], column: Float[Tensor, "N"]
) -> Float[Tensor, "NB M"]:
    return (column[:, None, None] * partners).flatten(0, 1)
