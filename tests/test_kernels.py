"""Our kernels against GPyTorch's, slow loops, and their uses in ExactGP and BoTorch."""

import math

import gpytorch
import pytest
import torch

from orbitgp import RBF, InvariantKernel, Rotation, coordinate_swap
from orbitgp.errors import InputError, OrbitGPError
from orbitgp.kernels import _Dense, covariance, covariance_among, variance
from orbitgp.orbits import PermutationGroup, QuarterTurns, SignFlips
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")


def peer(kernel):
    """The same function from GPyTorch's parts."""
    theirs = gpytorch.kernels.ScaleKernel(
        gpytorch.kernels.RBFKernel(
            ard_num_dims=kernel.ard_num_dims, batch_shape=kernel.batch_shape
        ),
        batch_shape=kernel.batch_shape,
    )
    theirs.outputscale = kernel.variance.detach()[..., 0, 0]
    theirs.base_kernel.lengthscale = kernel.lengthscale.detach()
    return theirs


@pytest.mark.parametrize("ard", [None, 3])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_rbf_is_gpytorchs(ard, batch, generator):
    kernel = RBF(ard_num_dims=ard, batch_shape=torch.Size(batch))
    kernel.raw_lengthscale.data = torch.randn(kernel.raw_lengthscale.shape, generator=generator)
    kernel.raw_variance.data = torch.randn(kernel.raw_variance.shape, generator=generator)
    x = torch.randn(*batch, 5, 3, generator=generator)
    z = torch.randn(*batch, 4, 3, generator=generator)
    theirs = peer(kernel)
    assert_close(covariance(kernel, x, z), theirs(x, z).to_dense())
    assert_close(kernel(x, x, diag=True), theirs(x, x, diag=True))
    assert_close(kernel(x, x, diag=True), covariance(kernel, x, x).diagonal(dim1=-2, dim2=-1))


@pytest.mark.parametrize("ard", [None, 2])
def test_rbf_gradients(ard, generator):
    x = torch.randn(3, 2, generator=generator, requires_grad=True)
    z = torch.randn(4, 2, generator=generator, requires_grad=True)

    kernel = RBF(ard_num_dims=ard)

    def kernel_of(x, z, raw_lengthscale, raw_variance):
        values = {"kernel.raw_lengthscale": raw_lengthscale, "kernel.raw_variance": raw_variance}
        return torch.func.functional_call(_Dense(kernel), values, (x, z))

    raw = (torch.randn(1, ard or 1, generator=generator), torch.randn(1, 1, generator=generator))
    arguments = (x, z, *(part.requires_grad_() for part in raw))
    gradients = torch.autograd.grad(kernel_of(*arguments).sum(), arguments)
    assert all((gradient != 0).all() for gradient in gradients)
    assert torch.autograd.gradcheck(kernel_of, arguments)


@pytest.mark.parametrize("ard", [None, 2])
def test_rbf_gradients_with_batches_are_gpytorchs(ard, generator):
    kernel = RBF(0.7, 1.3, batch_shape=torch.Size([2]), ard_num_dims=ard)
    theirs = peer(kernel)
    x = torch.randn(3, 1, 4, 2, generator=generator, requires_grad=True)
    z = torch.randn(5, 2, generator=generator, requires_grad=True)
    weights = torch.randn(3, 2, 4, 5, generator=generator)
    ours = [x, z, kernel.raw_lengthscale, kernel.raw_variance]
    others = [x, z, theirs.base_kernel.raw_lengthscale, theirs.raw_outputscale]
    mine = torch.autograd.grad((weights * kernel(x, z).to_dense()).sum(), ours)
    expected = torch.autograd.grad((weights * theirs(x, z).to_dense()).sum(), others)
    for ours, other in zip(mine, expected, strict=True):
        assert_close(ours.reshape(other.shape), other)


@pytest.mark.parametrize("ard", [None, 2])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_points_among_themselves_have_the_covariances_of_any_two(ard, batch, dtype, generator):
    kernel = RBF(0.7, 1.3, batch_shape=torch.Size(batch), ard_num_dims=ard)
    points = torch.randn(3, 1, 4, 2, generator=generator).to(dtype).requires_grad_()
    weights = torch.randn(3, *(batch or (1,)), 4, 4, generator=generator)  # not symmetric
    among, wide = kernel.among(points, torch.float64), points.double()
    apart = kernel.forward(wide, wide)
    assert among.dtype == torch.float64
    assert_close(among, apart)
    moved = [points, kernel.raw_lengthscale, kernel.raw_variance]
    found = torch.autograd.grad((weights * among).sum(), moved)
    expected = torch.autograd.grad((weights * apart).sum(), moved)
    for ours, other in zip(found, expected, strict=True):
        assert_close(ours, other, tolerance=1e-10 if dtype == torch.float64 else 1e-5)


def test_float32_points_have_float64_covariances(generator):
    """Rounding in float32 would leave eigenvalues of -1e-6; those of float64 are far above."""
    points = torch.randn(200, 3, generator=generator).float()
    kernel = RBF(1.0, 3.0)
    among = covariance_among(kernel, points, torch.float64)
    assert torch.linalg.eigvalsh(among).min() > -1e-12
    narrow = covariance_among(kernel, points, torch.float32).double()
    assert torch.linalg.eigvalsh(narrow).min() < -1e-7


def test_second_derivatives_are_refused(generator):
    kernel, x = RBF(), torch.randn(3, 2, generator=generator)
    for values in (covariance(kernel, x, x), covariance_among(kernel, x, x.dtype)):
        with pytest.raises(OrbitGPError, match="second derivatives"):
            torch.autograd.grad(values.square().sum(), kernel.raw_lengthscale, create_graph=True)


@pytest.mark.parametrize(
    "kernel",
    [
        gpytorch.kernels.PolynomialKernel(2),
        gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(1.5)),
        gpytorch.kernels.LinearKernel(),
        RBF(),
    ],
)
def test_parameters_follow_the_dtype_of_the_points(kernel, generator):
    x = torch.randn(4, 2, generator=generator)
    single = covariance(kernel.float(), x.float(), x.float())
    assert single.dtype == torch.float32
    double = covariance(kernel, x, x)
    assert double.dtype == torch.float64
    assert_close(single.double(), double, tolerance=1e-5)
    (gradient,) = torch.autograd.grad(double.sum(), next(kernel.parameters()))
    assert gradient != 0


def test_rbf_far_from_the_origin_in_float32(generator):
    x = torch.randn(50, 3, generator=generator, dtype=torch.float32)
    kernel = RBF().float()
    shifted = covariance(kernel, x + 1000, x + 1000)
    assert (shifted - covariance(kernel, x, x)).abs().max() < 1e-3
    assert shifted.max() <= 1


def slow_double_mean(base, orbit, x, y):
    """k_f by its definition, one pair at a time."""
    result = torch.zeros(len(x), len(y))
    for i, left in enumerate(orbit.enumerate(x).points):
        for j, right in enumerate(orbit.enumerate(y).points):
            total = sum(base(a[None], b[None]).to_dense().item() for a in left for b in right)
            result[i, j] = total / (len(left) * len(right))
    return result


@pytest.mark.parametrize(
    "orbit", [coordinate_swap(0, 1, 3), SignFlips(0, 2), PermutationGroup((1, 2, 0))]
)
def test_invariant_kernel_is_the_double_mean(orbit, generator):
    base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=3))
    base.base_kernel.lengthscale = torch.tensor([[0.5, 1.0, 2.0]])
    kernel = InvariantKernel(base, orbit)
    x = torch.randn(4, 3, generator=generator)
    y = torch.randn(2, 3, generator=generator)
    with torch.no_grad():
        assert_close(covariance(kernel, x, y), slow_double_mean(base, orbit, x, y))
        assert_close(variance(kernel, x), covariance(kernel, x, x).diagonal())
        moved = orbit.enumerate(x).points[:, -1]
        assert_close(covariance(kernel, moved, y), covariance(kernel, x, y))


def test_invariant_kernel_batches(generator):
    base = gpytorch.kernels.ScaleKernel(
        gpytorch.kernels.MaternKernel(ard_num_dims=2, batch_shape=torch.Size([3])),
        batch_shape=torch.Size([3]),
    )
    base.outputscale = torch.tensor([0.5, 1.0, 2.0])
    kernel = InvariantKernel(base, coordinate_swap(0, 1, 2))
    assert kernel.batch_shape == (3,)
    x = torch.randn(3, 5, 2, generator=generator)
    batched = kernel(x, x).to_dense()
    assert batched.shape == (3, 5, 5)
    assert_close(kernel(x, x, diag=True), batched.diagonal(dim1=-2, dim2=-1))
    for b in range(3):  # a kernel with batches on inputs without
        assert_close(batched[b], kernel(x[b], x[b]).to_dense()[b])


def test_invariant_kernel_on_images(generator):
    images = torch.randn(3, 16, generator=generator)
    kernel = InvariantKernel(RBF(), QuarterTurns(), event_shape=(4, 4))
    turned = images.reshape(3, 4, 4).rot90(1, (1, 2)).reshape(3, 16)
    assert_close(covariance(kernel, images, images), covariance(kernel, turned, images))


def test_diagonal_needs_no_full_matrix(generator):
    x = torch.randn(200_000, 2, generator=generator)  # the full matrix would take 320 GB
    kernel = InvariantKernel(RBF(), coordinate_swap(0, 1, 2))
    with torch.no_grad():
        diagonal = kernel(x, x, diag=True)
        assert_close(diagonal[:3], covariance(kernel, x[:3], x[:3]).diagonal())


@pytest.mark.parametrize("arguments", [(-1.0, 1.0), (1.0, 0.0), (1.0, math.nan), (math.inf, 1.0)])
def test_impossible_kernels_are_refused(arguments):
    with pytest.raises(InputError, match="positive and finite"):
        RBF(*arguments)


def test_a_distribution_cannot_be_enumerated():
    with pytest.raises(InputError, match="use InvariantGP"):
        InvariantKernel(RBF(), Rotation())


def test_inside_exact_gp(generator):
    """An ExactGP with our kernel predicts the same at (a, b) and (b, a), and learns."""

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = InvariantKernel(RBF(ard_num_dims=2), coordinate_swap(0, 1, 2))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    x = torch.rand(30, 2, generator=generator)
    y = torch.sin(3 * x.sum(1)) + x.prod(1)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    model.eval()
    test = torch.rand(10, 2, generator=generator)
    with torch.no_grad():
        assert_close(model(test).mean, model(test.flip(1)).mean, tolerance=1e-8)
        assert_close(model(test).variance, model(test.flip(1)).variance, tolerance=1e-8)


@pytest.mark.filterwarnings("ignore")  # BoTorch warns of its own optimiser and data scaling
def test_inside_botorch(generator):
    """A SingleTaskGP with our kernel optimises a permutation-symmetric function."""
    from botorch.acquisition import PosteriorMean
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf

    def function(x):  # two equal maxima, at (0.2, 0.7) and (0.7, 0.2)
        return -((x.sum(-1) - 0.9) ** 2 + 10 * (x.prod(-1) - 0.14) ** 2).unsqueeze(-1)

    x = torch.rand(25, 2, generator=generator)
    base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))
    invariant = InvariantKernel(base, coordinate_swap(0, 1, 2))
    model = SingleTaskGP(x, function(x), covar_module=invariant)
    fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model))
    torch.manual_seed(0)  # BoTorch draws its restarts from the global generator
    candidate, _ = optimize_acqf(
        PosteriorMean(model),
        bounds=torch.tensor([[0.0, 0.0], [1.0, 1.0]]),
        q=1,
        num_restarts=4,
        raw_samples=32,
    )
    assert function(candidate).item() > -0.01
    posterior = model.posterior(torch.stack([candidate, candidate.flip(-1)]))
    assert_close(posterior.mean[0], posterior.mean[1], tolerance=1e-6)
    assert math.isfinite(posterior.variance.sum().item())
