"""A policy as source for torchvision.transforms.v2."""

from collections.abc import Sequence

from orbitgp.export import tensor_steps
from orbitgp.export.program import header, program
from orbitgp.export.step import Step

IMPORTS = {
    "torch.": "import torch",
    "tv_tensors.": "from torchvision import tv_tensors",
    "v2.": "from torchvision.transforms import v2",
}

NOTES = (
    "Use it after v2.ToImage() and v2.ToDtype(torch.float32, scale=True), on images [C, H, W] or "
    "batches [B, C, H, W]. Each image of a batch has draws of its own, from torch's global "
    "generator. This file needs torch and torchvision and nothing else."
)

READ = '''
def read(images, x, y):
    """Values at positions in pixels from the centre of the image: bilinear, 0 outside."""
    height, width = images.shape[-2:]
    grid = torch.stack([2 * x / width, 2 * y / height], -1)
    return torch.nn.functional.grid_sample(
        images, grid, mode="bilinear", padding_mode="zeros", align_corners=False
    )
'''

TRANSFORM = '''

class LearnedAugmentation(v2.Transform):
    """Changes images as their labels allow; labels and other values are passed through."""

    def make_params(self, flat_inputs):
        for image in flat_inputs:
            check(image)
        shapes = [tuple(image.shape) for image in flat_inputs]
        return {"draws": draw_all((1, *shapes[0])[-4:])} if shapes else {}

    def transform(self, inpt, params):
        images = inpt.as_subclass(torch.Tensor).reshape(-1, *inpt.shape[-3:])
        changed = apply_all(images, params["draws"]).reshape(inpt.shape)
        return tv_tensors.wrap(changed, like=inpt)


def check(image):
    """Refuse what is no image, such as a mask or a box that would have to move with it."""
    is_image = type(image) in (torch.Tensor, tv_tensors.Image)
    if not is_image or image.ndim not in (3, 4) or not image.is_floating_point():
        about = (image.dtype, tuple(image.shape)) if is_image else type(image).__name__
        raise TypeError(
            "this transform is for images alone, floating point [C, H, W] or [B, C, H, W]; got "
            f"{about}: use it after v2.ToImage() and v2.ToDtype(torch.float32, scale=True)"
        )
'''


def torchvision_source(steps: Sequence[Step], remarks: Sequence[str]) -> str:
    """A file with the class LearnedAugmentation."""
    return program(
        steps,
        header=header("torchvision", steps, remarks, NOTES),
        imports=IMPORTS,
        helpers={"read": READ, **tensor_steps.HELPERS},
        classes=tensor_steps.CLASSES,
        rest=tensor_steps.TOGETHER + TRANSFORM,
    )
