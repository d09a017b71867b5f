"""A policy as source for kornia.augmentation."""

from collections.abc import Sequence

from orbitgp.export import tensor_steps
from orbitgp.export.program import header, program
from orbitgp.export.step import Step

IMPORTS = {
    "torch.": "import torch",
    "IntensityAugmentationBase2D": "from kornia.augmentation import IntensityAugmentationBase2D",
    " remap(": "from kornia.geometry.transform import remap",
}

NOTES = (
    "Use it on batches of floating-point images [B, C, H, W], alone or in an "
    "AugmentationSequential or ImageSequential. Each image of a batch has draws of its own, from "
    "torch's global generator. This file needs torch and kornia and nothing else."
)

READ = '''
def read(images, x, y):
    """Values at positions in pixels from the centre of the image: bilinear, 0 outside."""
    height, width = images.shape[-2:]
    return remap(
        images,
        x + (width - 1) / 2,
        y + (height - 1) / 2,
        mode="bilinear",
        padding_mode="zeros",
        align_corners=True,
    )
'''

TRANSFORM = '''

class LearnedAugmentation(IntensityAugmentationBase2D):
    """Changes images as their labels allow; the draws of the last call are in `_params`."""

    def __init__(self):
        super().__init__(p=1.0, keepdim=True)

    def generate_parameters(self, batch_shape):
        return draw_all(tuple(batch_shape))

    def apply_transform(self, input, params, flags, transform=None):
        return apply_all(input, params)

    def refuse(self, *args, **kwargs):
        raise TypeError("this transform is for images alone, not for masks, boxes or keypoints")

    apply_transform_mask = apply_transform_box = apply_transform_keypoint = refuse
'''


def kornia_source(steps: Sequence[Step], remarks: Sequence[str]) -> str:
    """A file with the class LearnedAugmentation."""
    return program(
        steps,
        header=header("kornia", steps, remarks, NOTES),
        imports=IMPORTS,
        helpers={"read": READ, **tensor_steps.HELPERS},
        classes=tensor_steps.CLASSES,
        rest=tensor_steps.TOGETHER + TRANSFORM,
    )
