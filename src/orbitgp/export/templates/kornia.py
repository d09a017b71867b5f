"""Use it on batches of floating-point images [B, C, H, W], alone or in an AugmentationSequential or
ImageSequential.

Each image of a batch has draws of its own, from torch's global generator. This file needs torch and
kornia and nothing else.
"""

from kornia.augmentation import IntensityAugmentationBase2D

from orbitgp.export.templates.steps import apply_all, draw_all


class LearnedAugmentation(IntensityAugmentationBase2D):
    """A transform that changes images as labels allow; the last draws are in `_params`."""

    def __init__(self):
        super().__init__(p=1.0, keepdim=True)

    def generate_parameters(self, batch_shape):
        return draw_all(tuple(batch_shape))

    def apply_transform(self, input, params, flags, transform=None):
        return apply_all(input, params)

    def refuse(self, *args, **kwargs):
        raise TypeError("this transform is for images alone, not for masks, boxes or keypoints")

    apply_transform_mask = apply_transform_box = apply_transform_keypoint = refuse
