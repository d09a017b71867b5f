"""A policy as source for albumentations 2.0."""

from collections.abc import Sequence

from orbitgp.export import array_steps
from orbitgp.export.program import header, program
from orbitgp.export.step import Step

IMPORTS = {
    "A.": "import albumentations as A",
    "cv2.": "import cv2",
    "np.": "import numpy as np",
}

NOTES = (
    "Use it on images [H, W] or [H, W, C] of float32, or of uint8, which it takes for 0 to 255 and "
    "rounds and clips at the end. Draws come from the generator of the transform, which A.Compose "
    "seeds. This file needs albumentations 2.0 and nothing else."
)

TRANSFORM = '''

class LearnedAugmentation(A.ImageOnlyTransform):
    """Changes images as their labels allow."""

    def __init__(self, p=1.0):
        super().__init__(p=p)

    def get_params_dependent_on_data(self, params, data):
        others = sorted(data.keys() & {"mask", "masks", "bboxes", "keypoints"})
        if others:
            raise TypeError(f"this transform is for images alone; got {', '.join(others)}, too")
        return {"draws": draw_all((*params["shape"], 1)[:3], self.random_generator)}

    def apply(self, img, draws, **params):
        if img.dtype not in (np.uint8, np.float32):
            raise TypeError(f"images are uint8 or float32; got {img.dtype}")
        whole = img.dtype == np.uint8
        image = img.reshape(*img.shape[:2], -1).astype(np.float32) / (255 if whole else 1)
        changed = apply_all(image, draws).reshape(img.shape)
        return np.rint(np.clip(changed, 0, 1) * 255).astype(np.uint8) if whole else changed
'''


def albumentations_source(steps: Sequence[Step], remarks: Sequence[str]) -> str:
    """A file with the class LearnedAugmentation."""
    return program(
        steps,
        header=header("albumentations", steps, remarks, NOTES),
        imports=IMPORTS,
        helpers=array_steps.HELPERS,
        classes=array_steps.CLASSES,
        rest=array_steps.TOGETHER + TRANSFORM,
    )
