"""Source of steps that act on one image [H, W, C] in NumPy and OpenCV."""

HELPERS = {
    "log_uniform": '''
def log_uniform(ends, random):
    """A draw whose logarithm is uniform."""
    low, high = ends
    return low * (high / low) ** random.random()
''',
    "read": '''
def read(image, x, y):
    """Values at positions in pixels from the centre of the image: bilinear, 0 outside."""
    height, width = image.shape[:2]
    x, y = x + (width - 1) / 2, y + (height - 1) / 2
    left, top = np.floor(x), np.floor(y)
    # four whole pixels each, since OpenCV 4 rounds positions between pixels to 1/32
    across, down = (x - left)[..., None], (y - top)[..., None]
    upper = (1 - across) * pixels(image, left, top) + across * pixels(image, left + 1, top)
    top = top + 1
    lower = (1 - across) * pixels(image, left, top) + across * pixels(image, left + 1, top)
    return (1 - down) * upper + down * lower
''',
    "pixels": '''
def pixels(image, columns, rows):
    """Values of these pixels, 0 outside."""
    places = columns.astype(np.float32), rows.astype(np.float32), cv2.INTER_NEAREST
    border = {"borderMode": cv2.BORDER_CONSTANT, "borderValue": 0}
    planes = [np.ascontiguousarray(image[..., channel]) for channel in range(image.shape[2])]
    return np.stack([cv2.remap(plane, *places, **border) for plane in planes], -1)
''',
    "positions": '''
def positions(image):
    """Of pixels, from the centre of the image: x [W] to the right and y [H, 1] down."""
    height, width = image.shape[:2]
    return np.arange(width) - (width - 1) / 2, np.arange(height)[:, None] - (height - 1) / 2
''',
    "slopes": '''
def slopes(image):
    """Central differences along x and along y; outside of an image is 0."""
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    along_x = (padded[1:-1, 2:] - padded[1:-1, :-2]) / 2
    along_y = (padded[2:, 1:-1] - padded[:-2, 1:-1]) / 2
    return along_x, along_y
''',
    "cosines": '''
def cosines(orders, size):
    """Rows cos(order (p + 1)) at the pixels p of an axis from -1 to 1, of one norm."""
    rows = np.cos(orders[:, None] * ((np.arange(size) * 2 + 1) / size))
    return np.concatenate([rows[:1], np.sqrt(2) * rows[1:]])
''',
}
"""By the name of the function; one that uses another comes before it."""

CLASSES = {
    "affine": '''
@dataclass(frozen=True)
class Affine:
    """Scale, then shear, then turn, then shift the image about its centre; 0 comes in outside."""

    rotation: tuple = (0.0, 0.0)  # degrees, counter-clockwise
    x_scale: tuple = (1.0, 1.0)  # factor, uniform in its logarithm
    y_scale: tuple = (1.0, 1.0)
    shear: tuple = (0.0, 0.0)  # x += shear * y, with y downward
    x_shift: tuple = (0.0, 0.0)  # percent of the width, to the right
    y_shift: tuple = (0.0, 0.0)  # percent of the height, down

    def draw(self, shape, random):
        return {
            "rotation": random.uniform(*self.rotation),
            "x_scale": log_uniform(self.x_scale, random),
            "y_scale": log_uniform(self.y_scale, random),
            "shear": random.uniform(*self.shear),
            "x_shift": random.uniform(*self.x_shift),
            "y_shift": random.uniform(*self.y_shift),
        }

    def apply(self, image, rotation, x_scale, y_scale, shear, x_shift, y_shift):
        height, width = image.shape[:2]
        angle = np.deg2rad(rotation)
        cos, sin = np.cos(angle), np.sin(angle)
        # a pixel is read where it came from, so all is undone, the last first
        x, y = positions(image)
        x, y = x - x_shift / 100 * width, y - y_shift / 100 * height
        x, y = cos * x - sin * y, sin * x + cos * y
        x = x - shear * y
        return read(image, x / x_scale, y / y_scale)
''',
    "mirror": '''
@dataclass(frozen=True)
class Mirror:
    """Mirror every other image: left and right if horizontal, top and bottom if vertical."""

    axis: str

    def draw(self, shape, random):
        return {"mirrored": random.integers(2)}

    def apply(self, image, mirrored):
        axis = {"horizontal": 1, "vertical": 0}[self.axis]
        return np.flip(image, axis) if mirrored else image
''',
    "quarter turns": '''
@dataclass(frozen=True)
class QuarterTurns:
    """Turn a square image counter-clockwise by 0, 1, 2 or 3 times 90 degrees."""

    def draw(self, shape, random):
        return {"turns": random.integers(4)}

    def apply(self, image, turns):
        if image.shape[0] != image.shape[1]:
            raise ValueError(f"quarter turns need square images; got {image.shape}")
        return np.rot90(image, turns)
''',
    "cyclic shifts": '''
@dataclass(frozen=True)
class CyclicShifts:
    """Shift an image by a multiple of a step of pixels; what leaves comes in on the other side."""

    length: int
    step: int
    axis: str

    def draw(self, shape, random):
        return {"shift": self.step * random.integers(self.length // self.step)}

    def apply(self, image, shift):
        axis = {"horizontal": 1, "vertical": 0}[self.axis]
        if image.shape[axis] != self.length:
            raise ValueError(f"shifts are of {self.length} pixels; got {image.shape}")
        return np.roll(image, shift, axis)
''',
    "intensity": '''
@dataclass(frozen=True)
class Intensity:
    """Multiply values by a contrast and add a brightness; nothing is clipped."""

    contrast: tuple = (1.0, 1.0)  # factor, uniform in its logarithm
    brightness: tuple = (0.0, 0.0)

    def draw(self, shape, random):
        return {
            "contrast": log_uniform(self.contrast, random),
            "brightness": random.uniform(*self.brightness),
        }

    def apply(self, image, contrast, brightness):
        return image * contrast + brightness
''',
    "noise": '''
@dataclass(frozen=True)
class GaussianNoise:
    """Add independent normal noise to every value; nothing is clipped."""

    deviation: float

    def draw(self, shape, random):
        return {"normal": random.standard_normal(shape)}

    def apply(self, image, normal):
        return image + self.deviation * normal
''',
    "local deformation": '''
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

    def draw(self, shape, random):
        frequencies = (self.num_frequencies, self.num_frequencies)
        return {"normal": random.standard_normal((5, *frequencies))}

    def apply(self, image, normal):
        x, y = positions(image)
        along_x, along_y, turn, scale, thickness = self.fields(image, normal)
        d_x, d_y = along_x - turn * y + scale * x, along_y + turn * x + scale * y
        if self.first_order:
            slope_x, slope_y = slopes(image)
            moved = image + d_x[..., None] * slope_x + d_y[..., None] * slope_y
        else:
            moved = read(image, x + d_x, y + d_y)
        slope_x, slope_y = slopes(moved)
        small = 2e-3 / image.shape[1]
        steepness = np.sqrt(slope_x**2 + slope_y**2 + small**2) - small
        return moved + thickness[..., None] * steepness

    def fields(self, image, normal):
        """[5, H, W]: displacements and thickness in pixels, angles in radians, scaling."""
        height, width = image.shape[:2]
        orders = np.arange(self.num_frequencies) * np.pi / 2
        rows, columns = cosines(orders, height), cosines(orders, width)
        weights = np.exp(-0.5 * (self.smoothness / 50) ** 2 * (orders[:, None] ** 2 + orders**2))
        power = np.mean(rows**2, 1)[:, None] * np.mean(columns**2, 1)
        weights = weights / np.sqrt((weights**2 * power).sum())
        percent = width / 100
        sizes = [
            self.x_displacement * percent,
            self.y_displacement * percent,
            np.deg2rad(self.local_rotation),
            self.local_scaling / 100,
            self.thickness * percent,
        ]
        coefficients = normal * weights * np.array(sizes)[:, None, None]
        return rows.T @ coefficients @ columns
''',
}
"""By the kind of the step."""

TOGETHER = '''
def draw_all(shape, random):
    """Draws of all steps for an image [H, W, C] of this shape."""
    return {
        f"{place}_{name}": value
        for place, step in enumerate(STEPS)
        for name, value in step.draw(shape, random).items()
    }


def apply_all(image, draws):
    """The steps in turn, with these draws, for an image of float32."""
    for place, step in enumerate(STEPS):
        own = {
            name.partition("_")[2]: value
            for name, value in draws.items()
            if name.startswith(f"{place}_")
        }
        image = step.apply(image, **own).astype(np.float32)
    return image
'''
