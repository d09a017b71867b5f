"""Feature maps, kernels and likelihoods."""

import math

import torch
from torch import nn

from orbitgp.blueprints.checks import GIVEN, Config, Tensors, integer, refuse
from orbitgp.errors import InputError
from orbitgp.features import MAX_CELLS, OrientedEnergy, Standardize
from orbitgp.kernels import RBF, Kernel, MaternKernel, RBFKernel, ScaleKernel
from orbitgp.likelihoods.gaussian import Gaussian, OneHotGaussian
from orbitgp.likelihoods.polya_gamma import PolyaGamma
from orbitgp.likelihoods.recognition import Recognition
from orbitgp.likelihoods.softmax import Softmax
from orbitgp.patches import PatchFeatures
from orbitgp.sealed import within

MAX_CLASSES = 10_000
MAX_INPUTS = 2**24


def feature_map_config(feature_map: nn.Module) -> Config:
    """The structure of a feature map."""
    if type(feature_map) is nn.Flatten:
        return {"kind": "Flatten"}
    if type(feature_map) is OrientedEnergy:
        return {
            "kind": "OrientedEnergy",
            "num_directions": feature_map.num_directions,
            "cells": list(feature_map.cells),
            "sharpness": feature_map.sharpness,
            "overlap": feature_map.overlap,
            "contrast": feature_map.contrast,
        }
    if type(feature_map) is PatchFeatures:
        return {
            "kind": "PatchFeatures",
            "contrast": feature_map.contrast,
            "cells": feature_map.cells,
            "threshold": feature_map.threshold,
            "stride": feature_map.stride,
            "dilation": feature_map.dilation,
            "series": feature_map.series,
        }
    return {"kind": "Standardize"} if type(feature_map) is Standardize else GIVEN


def feature_map_from(config: Config, tensors: Tensors) -> nn.Module:
    """The feature map with this structure."""
    match config["kind"]:
        case "Flatten":
            return nn.Flatten()
        case "Standardize":
            return Standardize(tensors["mean"], tensors["scale"])
        case "OrientedEnergy":
            cells = tuple(integer(size) for size in config["cells"])
            count, sharpness = integer(config["num_directions"]), float(config["sharpness"])
            if max(count, len(cells), *cells) > MAX_CELLS or not 1 <= sharpness <= MAX_CELLS:
                refuse(f"oriented energy of {count} directions in {cells} cells, {sharpness}")
            constants = float(config["overlap"]), float(config["contrast"])
            if not all(0 < constant < math.inf for constant in constants):
                refuse(f"oriented energy with overlap and contrast {constants}")
            return OrientedEnergy(count, cells, sharpness, *constants)
        case "PatchFeatures":
            contrast, threshold = float(config["contrast"]), float(config["threshold"])
            sizes = {name: integer(config[name]) for name in ("cells", "stride", "dilation")}
            series = config["series"] is True
            try:
                return PatchFeatures(
                    tensors["filters"], contrast, threshold=threshold, series=series, **sizes
                )
            except InputError as error:
                refuse(str(error))
    refuse(f"a feature map of kind {config['kind']!r}")


def kernel_config(kernel: Kernel) -> Config:
    """The structure of a kernel: ours, or an RBF or Matérn kernel of GPyTorch times a variance."""
    if kernel.active_dims is not None or len(kernel.batch_shape) or list(kernel.named_priors()):
        return GIVEN
    if type(kernel) is ScaleKernel and type(kernel.base_kernel) is not ScaleKernel:
        base = kernel_config(kernel.base_kernel)
        return base if base == GIVEN else {"kind": "ScaleKernel", "base": base}
    if type(kernel) not in (RBF, RBFKernel, MaternKernel):
        return GIVEN
    usual = str(kernel.raw_lengthscale_constraint) == str(RBFKernel().raw_lengthscale_constraint)
    if not usual:
        return GIVEN
    if isinstance(kernel, MaternKernel):
        return {"kind": "MaternKernel", "nu": kernel.nu}
    if isinstance(kernel, RBF):
        return {"kind": "RBF"}
    return {"kind": "RBFKernel"}


def kernel_from(config: Config, tensors: Tensors) -> Kernel:
    """The kernel with this structure; its numbers are filled in later."""
    if config["kind"] == "ScaleKernel":
        if config["base"]["kind"] == "ScaleKernel":
            refuse("a kernel within kernels")
        return ScaleKernel(kernel_from(config["base"], within(tensors, "base_kernel")))
    lengthscale = tensors["raw_lengthscale"]
    size = lengthscale.shape[-1]
    axes = size if size > 1 else None
    match config["kind"]:
        case "RBF":
            return RBF(ard_num_dims=axes).to(lengthscale.dtype)
        case "RBFKernel":
            return RBFKernel(ard_num_dims=axes).to(lengthscale.dtype)
        case "MaternKernel" if config["nu"] in (0.5, 1.5, 2.5):
            return MaternKernel(nu=config["nu"], ard_num_dims=axes).to(lengthscale.dtype)
    refuse(f"a kernel of kind {config['kind']!r}")


def likelihood_config(likelihood: nn.Module) -> Config:
    """The structure of a likelihood."""
    if type(likelihood) is OneHotGaussian:
        return {"kind": "OneHotGaussian", "num_classes": likelihood.num_classes}
    if type(likelihood) in (PolyaGamma, Softmax):
        config = {"kind": type(likelihood).__name__, "num_classes": likelihood.num_classes}
        network = likelihood.recognition
        if network is None:
            return config
        # the shapes of its tensors say the rest
        return {**config, "recognition": True} if type(network) is Recognition else GIVEN
    return {"kind": "Gaussian"} if type(likelihood) is Gaussian else GIVEN


def likelihood_from(config: Config, tensors: Tensors) -> nn.Module:
    """The likelihood with this structure; its numbers are filled in later."""
    match config["kind"]:
        case "Gaussian":
            return Gaussian([1.0] * len(tensors["raw_noise"]))
        case "OneHotGaussian":
            return OneHotGaussian(integer(config["num_classes"]))
        case "PolyaGamma":
            return PolyaGamma(recognition=_recognition_from(config, tensors, 1))
        case "Softmax":
            count = _num_classes(config)
            return Softmax(count, recognition=_recognition_from(config, tensors, count - 1))
    refuse(f"a likelihood of kind {config['kind']!r}")


def _recognition_from(config: Config, tensors: Tensors, num_local: int) -> Recognition | None:
    """The network with these tensors; its numbers are filled in later."""
    if config.get("recognition") is not True:
        return None
    num_hidden, size = within(tensors, "recognition")["hidden"].shape
    num_classes = _num_classes(config)
    if not num_classes < size <= MAX_INPUTS or not 1 <= num_hidden <= MAX_CLASSES:
        refuse(f"a recognition network of {num_hidden} units on {size} numbers")
    generator = torch.Generator().manual_seed(0)
    sizes = {"generator": generator, "num_hidden": num_hidden}
    return Recognition(size - num_classes, num_classes, num_local, **sizes)


def _num_classes(config: Config) -> int:
    count = integer(config["num_classes"])
    if not 2 <= count <= MAX_CLASSES:
        refuse(f"{count} classes")
    return count
