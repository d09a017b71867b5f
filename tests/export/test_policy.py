"""What a policy says, refuses, and survives, in the pipelines that people have."""

import ast
import json
import pickle
import sys

import numpy as np
import pytest
import torch

import orbitgp
from orbitgp import (
    Affine,
    FunctionOrbit,
    GaussianNoise,
    Identity,
    InputError,
    Mirror,
    PermutationGroup,
    Policy,
    Rotation,
    SignFlips,
    compose,
    export_policy,
)
from orbitgp.export.orbit_steps import OWN
from orbitgp.export.policy import LIBRARIES
from orbitgp.export.program import NAMES, TEMPLATES
from tests.conftest import concrete
from tests.export.libraries import TARGETS, needed
from tests.export.orbits import ORBITS

STANDARD = {"math", "dataclasses"}
FOREIGN = {
    "torchvision": {"torch", "torchvision"},
    "kornia": {"torch", "kornia"},
}


def imported(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


@pytest.mark.parametrize("library", TARGETS)
@pytest.mark.parametrize("name", ORBITS)
def test_source_stands_alone(library, name):
    """It needs the library, not orbitgp; it defines what it uses; lines are short."""
    source = export_policy(ORBITS[name][0], library).source
    assert set(imported(source)) <= STANDARD | FOREIGN[library]
    assert all(len(line) <= 100 for line in source.splitlines())
    tree = ast.parse(source)
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    told = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    ours = {"read", "uniform", "log_uniform", "positions", "slopes", "cosines"}
    assert told & ours == defined & ours
    assert ast.get_docstring(tree).startswith("Augmentation that was learned from data")


@pytest.mark.parametrize("library", TARGETS)
@pytest.mark.parametrize("name", ORBITS)
def test_source_is_copied_but_for_numbers_and_fixed_names(library, name):
    files = [TEMPLATES / "steps.py", TEMPLATES / f"{library}.py"]
    copied = {line for path in files for line in path.read_text(encoding="utf-8").splitlines()}
    source = export_policy(ORBITS[name][0], library).source
    _, _, after = source.partition('"""\n\n')
    program, _, steps = after.partition("\nSTEPS = ")
    assert set(program.splitlines()) <= copied
    nodes = list(ast.walk(ast.parse(steps.strip())))
    assert {node.id for node in nodes if isinstance(node, ast.Name)} <= set(NAMES.values())
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    assert all(isinstance(v, int | float) or v in ("horizontal", "vertical") for v in values)


def test_json_has_every_number():
    orbit = compose(Affine(-0.1, 0.2), Mirror(), GaussianNoise(0.5, event_shape=(4, 4)))
    policy = export_policy(orbit, "json")
    record = policy.make()
    assert json.loads(policy.source) == record
    assert [step["kind"] for step in record["steps"]] == ["affine", "mirror", "noise"]
    rotation, scale, *_ = record["steps"][0]["parameters"]
    assert (rotation["unit"], rotation["distribution"]) == ("°", "uniform")
    assert (rotation["low"], rotation["high"]) == pytest.approx((-5.729578, 11.459156), 1e-5)
    assert (scale["unit"], scale["distribution"]) == ("×", "log-uniform")
    assert (scale["low"], scale["high"]) == pytest.approx((np.exp(-0.1), np.exp(0.2)), 1e-5)
    assert record["steps"][0]["convention"]["rotation"] == "counter-clockwise"
    assert record["steps"][1]["settings"] == {"axis": "horizontal"}
    assert record["steps"][2]["parameters"][0]["standard_deviation"] == 0.5


def test_the_numbers_are_those_of_learned_ranges():
    for orbit, _ in ORBITS.values():
        steps = export_policy(orbit, "json").make()["steps"]
        told = {(p["name"], p["unit"]): p for step in steps for p in step["parameters"]}
        for found in orbit.learned_ranges():
            own = told.get((found.name, found.unit), {})
            if "low" in own:
                assert (own["low"], own["high"]) == pytest.approx((found.low, found.high), 1e-5)


def test_every_orbit_of_ours_has_a_step():
    """A new orbit is exported, or refused for a reason of its own, on purpose."""
    ours = {kind for kind in concrete(orbitgp.Orbit) if kind.__module__.startswith("orbitgp.")}
    described = {
        *("Affine", "Rotation", "Intensity", "LocalDeformation", "GaussianNoise", "Identity"),
        *("Mirror", "QuarterTurns", "CyclicShifts", "PermutationGroup", "SignFlips"),
        *("Crop", "Colour", "Blur", "TimeAffine", "TimeWarp", "Window", "Magnitude", "Drift"),
        *("PointRotation", "PointMirror", "Translation", "Jitter", "RandomOrder"),
        *("Composition", "FiniteComposition", "FunctionOrbit"),
    }
    assert {kind.__name__ for kind in ours} == described


def louder(x, gain):
    return x * torch.exp(gain.view(-1, *[1] * (x.ndim - 1)))


class Sly(Mirror):
    """A class derived from one of ours may do anything."""


REFUSED = {
    "function": (FunctionOrbit(louder, -0.1, 0.1, names=["'''"]), "code of yours"),
    "derived": (Sly(), "code of yours"),
    "permutations": (PermutationGroup((1, 0, 2)), "rows of numbers"),
    "signs": (SignFlips(0), "rows of numbers"),
    "channels": (Mirror(0), "axis 0 may be one of channels"),
    "noise": (GaussianNoise(torch.tensor([0.1, 0.2]), event_shape=(2,)), "for each value"),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_expressed_is_refused(library, name):
    orbit, reason = REFUSED[name]
    whole = compose(Rotation(-0.1, 0.1), orbit)
    if library == "json" and "code" not in reason:
        assert len(export_policy(whole, library).make()["steps"]) == 2
        return
    with pytest.raises(InputError, match=reason) as error:
        export_policy(whole, library)
    assert "affine (rotation -5.73 … 5.73 °)" in str(error.value)
    closest = export_policy(whole, library, leave_out=True)
    assert [step.kind for step in closest.steps] == ["affine"]
    assert len(closest.left_out) == 1
    assert closest.left_out[0] in closest.source
    assert "'''" not in closest.source  # names of users are no part of a program


def test_nothing_may_be_left():
    with pytest.raises(InputError, match="the closest policy that it can express is no change"):
        export_policy(REFUSED["function"][0], "torchvision")
    assert export_policy(REFUSED["derived"][0], "json", leave_out=True).left_out == (OWN,)


@pytest.mark.usefixtures("untyped")
def test_wrong_arguments():
    with pytest.raises(InputError, match="torchvision, kornia, json; got 'tf'"):
        export_policy(Identity(), "tf")
    with pytest.raises(InputError, match="got str: pass orbit_ of a fitted estimator"):
        export_policy("affine", "json")


@pytest.mark.parametrize("library", TARGETS)
def test_a_library_that_is_not_there(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=f"pip install .*{library}"):
        export_policy(Mirror(), library).make()


def test_save(tmp_path):
    policy = export_policy(Affine(-0.1, 0.1), "kornia")
    assert policy.save(tmp_path / "policy.py").read_text(encoding="utf-8") == policy.source
    with pytest.raises(orbitgp.FileError):
        policy.save(tmp_path / "nowhere" / "policy.py")


@pytest.mark.parametrize("library", TARGETS)
def test_a_transform_goes_to_another_process(library):
    """Workers of a DataLoader may be sent it."""
    needed(library)
    policy = export_policy(ORBITS["everything"][0], library)
    assert pickle.loads(pickle.dumps(policy)) == policy
    made = policy.make()
    again = pickle.loads(pickle.dumps(made))
    assert type(again).__name__ == "LearnedAugmentation"
    assert isinstance(again, type(made).__mro__[1])


def test_in_a_pipeline_of_torchvision():
    needed("torchvision")
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    transform = export_policy(Affine(-0.2, 0.2), "torchvision").make()
    pipeline = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), transform])
    pixels = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    image, label = pipeline(pixels, 3)
    assert isinstance(image, tv_tensors.Image)
    assert (image.shape, image.dtype, label) == ((3, 12, 16), torch.float32, 3)
    torch.manual_seed(0)
    first, again = transform(image), transform(image)
    assert not torch.equal(first, again)
    torch.manual_seed(0)
    assert torch.equal(transform(image), first)
    batch = transform(image.expand(5, -1, -1, -1))
    assert len({float(one.sum()) for one in batch}) == 5  # each has draws of its own
    assert transform(torch.rand(1, 8, 8).half()).dtype == torch.float16
    mask = tv_tensors.Mask(torch.zeros(12, 16))
    for wrong in (image.to(torch.uint8), mask, image[0], {"image": image, "mask": mask}):
        with pytest.raises(TypeError, match="for images alone"):
            transform(wrong)


def test_in_a_pipeline_of_kornia():
    kornia = needed("kornia")
    transform = export_policy(Affine(-0.2, 0.2), "kornia").make()
    images = torch.rand(5, 3, 12, 16)
    pipeline = kornia.augmentation.AugmentationSequential(transform, data_keys=["input"])
    changed = pipeline(images)
    assert changed.shape == images.shape
    assert not torch.equal(changed, images)
    assert torch.equal(pipeline(images, params=pipeline._params), changed)  # draws used again
    assert transform(images[0]).shape == (3, 12, 16)
    both = kornia.augmentation.AugmentationSequential(transform, data_keys=["input", "mask"])
    with pytest.raises(TypeError, match="for images alone"):
        both(images, images[:, :1])


@pytest.mark.parametrize("library", TARGETS)
def test_images_of_another_shape_are_refused(library):
    needed(library)
    for name, reason in (("quarter turns", "square"), ("cyclic shifts", "32 pixels")):
        transform = export_policy(ORBITS[name][0], library).make()
        with pytest.raises(ValueError, match=reason):
            transform(torch.zeros(1, 3, 8, 12))


def test_a_policy_is_a_value():
    policy = export_policy(Mirror(), "kornia")
    assert policy == export_policy(Mirror(), "kornia")
    assert isinstance(policy, Policy)
    assert str(export_policy(Identity(), "kornia")) == "no change"


@pytest.mark.parametrize("library", LIBRARIES)
def test_ranges_that_the_data_say_little_about_are_named(library):
    orbit = Affine(-0.1, 0.1)
    orbit.ranges.identified[:] = torch.tensor([False, True, True, False, True, True])
    policy = export_policy(orbit, library)
    assert [found.title for found in policy.unidentified] == ["rotation (°)", "shear"]
    assert "identified" in policy.source
    orbit.ranges.identified[:] = True
    assert "not identified" not in export_policy(orbit, library).source
