import pytest
import torch

from orbitgp import RBF, InputError, greedy_points, kmeans_points, random_points
from orbitgp.kernels import covariance
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")


def clusters(generator):
    """Ten tight clusters, of very different sizes."""
    centres = 10 * torch.randn(10, 2, generator=generator)
    sizes = torch.tensor([200, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    points = centres.repeat_interleave(sizes, 0)
    return centres, points + 0.01 * torch.randn(points.shape, generator=generator)


def test_random_points_are_different_candidates(generator):
    candidates = torch.arange(20.0)[:, None]
    points = random_points(candidates, 20, generator=generator)
    assert_close(points.sort(0).values, candidates)
    assert not torch.equal(points, candidates)


def test_greedy_points_find_every_cluster(generator):
    centres, candidates = clusters(generator)
    points = greedy_points(candidates, 10, RBF())
    assert torch.cdist(centres, points).min(1).values.max() < 0.1


def test_greedy_points_take_the_largest_conditional_variance(generator):
    candidates, kernel = torch.randn(30, 2, generator=generator), RBF(1.5, 0.7)
    points = greedy_points(candidates, 8, kernel)
    full = covariance(kernel, candidates, candidates).detach()
    for m in range(1, 8):
        cross = covariance(kernel, points[:m], candidates).detach()
        known = covariance(kernel, points[:m], points[:m]).detach()
        remaining = full.diagonal() - (cross * torch.linalg.solve(known, cross)).sum(0)
        chosen = (candidates - points[m]).abs().sum(1).argmin()
        assert_close(remaining[chosen], remaining.max(), tolerance=1e-8)


def test_greedy_points_survive_duplicates(generator):
    candidates = torch.randn(5, 2, generator=generator).repeat(3, 1)
    points = greedy_points(candidates, 15, RBF())
    assert_close(points.sort(0).values, candidates.sort(0).values)


def test_kmeans_lowers_the_distance_to_the_nearest_point(generator):
    candidates = torch.randn(500, 3, generator=generator)

    def distance(points):
        return torch.cdist(candidates, points).min(1).values.square().mean()

    start = random_points(candidates, 20, generator=torch.Generator().manual_seed(1))
    ours = kmeans_points(candidates, 20, generator=torch.Generator().manual_seed(1))
    assert distance(ours) < 0.8 * distance(start)
    nearest = torch.cdist(candidates, ours).argmin(1)
    more = kmeans_points(
        candidates, 20, generator=torch.Generator().manual_seed(1), num_iterations=200
    )
    nearest = torch.cdist(candidates, more).argmin(1)
    for m in range(20):  # at convergence each point is the mean of its own
        assert_close(more[m], candidates[nearest == m].mean(0))


@pytest.mark.parametrize("num_points", [0, 6])
def test_impossible_numbers_are_refused(num_points, generator):
    candidates = torch.randn(5, 2, generator=generator)
    with pytest.raises(InputError, match="1 to 5"):
        random_points(candidates, num_points, generator=generator)
    with pytest.raises(InputError, match="1 to 5"):
        greedy_points(candidates, num_points, RBF())


@pytest.mark.parametrize("bad", [torch.zeros(5, 2, 2), torch.zeros(5, 2).byte()])
def test_candidates_of_the_wrong_kind_are_refused(bad, generator):
    for place in (
        lambda: random_points(bad, 2, generator=generator),
        lambda: kmeans_points(bad, 2, generator=generator),
        lambda: greedy_points(bad, 2, RBF()),
    ):
        with pytest.raises(InputError, match=r"x.float\(\).flatten\(1\)"):
            place()
