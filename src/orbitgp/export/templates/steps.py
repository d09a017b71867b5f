"""The steps of exported policies, on batches of images [B, C, H, W] in torch.

`orbitgp.export.program` copies the definitions that a policy needs, and writes its `STEPS`.
"""

import math
from dataclasses import dataclass

import torch

STEPS: tuple = ()
"""The steps of a policy, in their order."""


def read(images, x, y):
    """Values at positions in pixels from the centre of the image: bilinear, 0 outside."""
    height, width = images.shape[-2:]
    grid = torch.stack([2 * x / width, 2 * y / height], -1)
    return torch.nn.functional.grid_sample(
        images, grid, mode="bilinear", padding_mode="zeros", align_corners=False
    )


def uniform(ends, count):
    """Draws between both ends, one for each image."""
    low, high = ends
    return low + (high - low) * torch.rand(count)


def log_uniform(ends, count):
    """Draws whose logarithms are uniform, one for each image."""
    low, high = ends
    return low * (high / low) ** torch.rand(count)


def positions(images):
    """Of pixels, from the centre of the image: x [W] to the right and y [H, 1] down."""
    height, width = images.shape[-2:]
    x = torch.arange(width).to(images) - (width - 1) / 2
    y = torch.arange(height).to(images)[:, None] - (height - 1) / 2
    return x, y


def slopes(images):
    """Central differences along x and along y; outside of an image is 0."""
    padded = torch.nn.functional.pad(images, (1, 1, 1, 1))
    along_x = (padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]) / 2
    along_y = (padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]) / 2
    return along_x, along_y


def cosines(orders, size):
    """Rows cos(order (p + 1)) at the pixels p of an axis from -1 to 1, of one norm."""
    rows = torch.cos(orders[:, None] * ((torch.arange(size).to(orders) * 2 + 1) / size))
    return torch.cat([rows[:1], math.sqrt(2) * rows[1:]])


@dataclass(frozen=True)
class Affine:
    """Scale, then shear, then turn, then shift the image about its centre; 0 comes in outside."""

    rotation: tuple = (0.0, 0.0)  # degrees, counter-clockwise
    x_scale: tuple = (1.0, 1.0)  # factor, uniform in its logarithm
    y_scale: tuple = (1.0, 1.0)
    shear: tuple = (0.0, 0.0)  # x += shear * y, with y downward
    x_shift: tuple = (0.0, 0.0)  # percent of the width, to the right
    y_shift: tuple = (0.0, 0.0)  # percent of the height, down

    def draw(self, shape):
        return {
            "rotation": uniform(self.rotation, shape[0]),
            "x_scale": log_uniform(self.x_scale, shape[0]),
            "y_scale": log_uniform(self.y_scale, shape[0]),
            "shear": uniform(self.shear, shape[0]),
            "x_shift": uniform(self.x_shift, shape[0]),
            "y_shift": uniform(self.y_shift, shape[0]),
        }

    def apply(self, images, **draws):
        own = {name: value[:, None, None] for name, value in draws.items()}
        height, width = images.shape[-2:]
        angle = torch.deg2rad(own["rotation"])
        cos, sin = torch.cos(angle), torch.sin(angle)
        # a pixel is read where it came from, so all is undone, the last first
        x, y = positions(images)
        x, y = x - own["x_shift"] / 100 * width, y - own["y_shift"] / 100 * height
        x, y = cos * x - sin * y, sin * x + cos * y
        x = x - own["shear"] * y
        return read(images, x / own["x_scale"], y / own["y_scale"])


@dataclass(frozen=True)
class Mirror:
    """Mirror every other image: left and right if horizontal, top and bottom if vertical."""

    axis: str

    def draw(self, shape):
        return {"mirrored": torch.randint(2, (shape[0],))}

    def apply(self, images, mirrored):
        mirror_image = images.flip({"horizontal": -1, "vertical": -2}[self.axis])
        return torch.where(mirrored[:, None, None, None] > 0, mirror_image, images)


@dataclass(frozen=True)
class QuarterTurns:
    """Turn square images counter-clockwise by 0, 1, 2 or 3 times 90 degrees."""

    def draw(self, shape):
        return {"turns": torch.randint(4, (shape[0],))}

    def apply(self, images, turns):
        if images.shape[-1] != images.shape[-2]:
            raise ValueError(f"quarter turns need square images; got {tuple(images.shape)}")
        turned = torch.stack([images.rot90(count, (-2, -1)) for count in range(4)])
        return turned[turns.long(), torch.arange(len(images))]


@dataclass(frozen=True)
class CyclicShifts:
    """Shift images by a multiple of a step of pixels; what leaves comes in on the other side."""

    length: int
    step: int
    axis: str

    def draw(self, shape):
        return {"shift": self.step * torch.randint(self.length // self.step, (shape[0],))}

    def apply(self, images, shift):
        axis = {"horizontal": -1, "vertical": -2}[self.axis]
        if images.shape[axis] != self.length:
            raise ValueError(f"shifts are of {self.length} pixels; got {tuple(images.shape)}")
        pairs = zip(images, shift.tolist(), strict=True)
        return torch.stack([image.roll(int(count), axis) for image, count in pairs])


@dataclass(frozen=True)
class Intensity:
    """Multiply values by a contrast and add a brightness; nothing is clipped."""

    contrast: tuple = (1.0, 1.0)  # factor, uniform in its logarithm
    brightness: tuple = (0.0, 0.0)

    def draw(self, shape):
        return {
            "contrast": log_uniform(self.contrast, shape[0]),
            "brightness": uniform(self.brightness, shape[0]),
        }

    def apply(self, images, contrast, brightness):
        return images * contrast[:, None, None, None] + brightness[:, None, None, None]


@dataclass(frozen=True)
class GaussianNoise:
    """Add independent normal noise to every value; nothing is clipped."""

    deviation: float

    def draw(self, shape):
        return {"normal": torch.randn(shape)}

    def apply(self, images, normal):
        return images + self.deviation * normal


@dataclass(frozen=True)
class LocalDeformation:
    """Move, turn and scale locally, and thicken, by smooth random fields.

    Numbers are standard deviations: in percent of the width, degrees, and percent for the scaling.
    """

    x_displacement: float
    y_displacement: float
    local_rotation: float
    local_scaling: float
    thickness: float
    smoothness: float  # of the Gaussian that smooths the fields, in percent of the width
    num_frequencies: int
    first_order: bool  # by the slope of the image instead of a warp

    def draw(self, shape):
        return {"normal": torch.randn(shape[0], 5, self.num_frequencies, self.num_frequencies)}

    def apply(self, images, normal):
        x, y = positions(images)
        along_x, along_y, turn, scale, thickness = self.fields(images, normal)
        d_x, d_y = along_x - turn * y + scale * x, along_y + turn * x + scale * y
        if self.first_order:
            slope_x, slope_y = slopes(images)
            moved = images + d_x[:, None] * slope_x + d_y[:, None] * slope_y
        else:
            moved = read(images, x + d_x, y + d_y)
        slope_x, slope_y = slopes(moved)
        small = 2e-3 / images.shape[-1]
        steepness = (slope_x**2 + slope_y**2 + small**2).sqrt() - small
        return moved + thickness[:, None] * steepness

    def fields(self, images, normal):
        """[5, B, H, W]: displacements and thickness in pixels, angles in radians, scaling."""
        height, width = images.shape[-2:]
        orders = torch.arange(self.num_frequencies).to(images) * math.pi / 2
        rows, columns = cosines(orders, height), cosines(orders, width)
        weights = torch.exp(-0.5 * (self.smoothness / 50) ** 2 * (orders[:, None] ** 2 + orders**2))
        power = rows.square().mean(1)[:, None] * columns.square().mean(1)
        weights = weights / (weights**2 * power).sum().sqrt()
        percent = width / 100
        sizes = images.new_tensor(
            [
                self.x_displacement * percent,
                self.y_displacement * percent,
                math.radians(self.local_rotation),
                self.local_scaling / 100,
                self.thickness * percent,
            ]
        )
        coefficients = normal * weights * sizes[:, None, None]
        return torch.einsum("bfij,ih,jw->fbhw", coefficients, rows, columns)


def draw_all(shape):
    """Draws of all steps for images [B, C, H, W] of this shape, independent for each image."""
    return {
        f"{place}_{name}": value
        for place, step in enumerate(STEPS)
        for name, value in step.draw(shape).items()
    }


def apply_all(images, draws):
    """The steps in turn, with these draws."""
    changed = images.to(torch.promote_types(images.dtype, torch.float32))
    for place, step in enumerate(STEPS):
        own = {
            name.partition("_")[2]: value.to(changed)
            for name, value in draws.items()
            if name.startswith(f"{place}_")
        }
        changed = step.apply(changed, **own)
    return changed.to(images.dtype)
