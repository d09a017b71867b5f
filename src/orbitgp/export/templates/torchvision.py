"""Use it after v2.ToImage() and v2.ToDtype(torch.float32, scale=True), on images [C, H, W] or
batches [B, C, H, W].

Each image of a batch has draws of its own, from torch's global generator. This file needs torch and
torchvision and nothing else.
"""

import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

from orbitgp.export.templates.steps import apply_all, draw_all


class LearnedAugmentation(v2.Transform):
    """A transform that changes images as their labels allow, and passes through other values."""

    def make_params(self, flat_inputs):
        for image in flat_inputs:
            check(image)
        shapes = [tuple(image.shape) for image in flat_inputs]
        return {"draws": draw_all((1, *shapes[0])[-4:])} if shapes else {}

    def transform(self, inpt, params):
        images = inpt.as_subclass(torch.Tensor).reshape(-1, *inpt.shape[-3:])
        changed = apply_all(images, params["draws"]).reshape(inpt.shape)
        return changed.as_subclass(type(inpt))


def check(image):
    """Refuse what is not an image, such as a mask or a box that would have to move with it."""
    is_image = type(image) in (torch.Tensor, tv_tensors.Image)
    if not is_image or image.ndim not in (3, 4) or not image.is_floating_point():
        about = (image.dtype, tuple(image.shape)) if is_image else type(image).__name__
        raise TypeError(
            "this transform is for images alone, floating point [C, H, W] or [B, C, H, W]; got "
            f"{about}: use it after v2.ToImage() and v2.ToDtype(torch.float32, scale=True)"
        )
