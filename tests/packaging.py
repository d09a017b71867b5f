"""Install a wheel with each of its extras into an environment of its own, and use what it brings.

`python -m tests.packaging dist/orbitgp-0.1.0-py3-none-any.whl` is part of `make package`. Extras
that are named after the wheel are tried alone.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

TORCH = "torch==2.13.0"  # the build for processors, as in the Makefile

PYTHON = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"

FIT = """
import numpy as np
from sklearn.datasets import load_digits
from orbitgp import InvariantGPClassifier, TrainingSettings
from orbitgp.reports import write_report
digits = load_digits()
quick = TrainingSettings(
    max_steps=2, scan_size=40, scan_draws=4, climb_size=40, climb_draws=4, search_size=60
)
model = InvariantGPClassifier("rotation", settings=quick, run="run", random_state=0)
model.fit(digits.images[:100], digits.target[:100])
assert model.score(digits.images[100:200], digits.target[100:200]) > 0.8
write_report("run")  # its templates are in the wheel
"""

USES = {
    "": "",
    "completion": "import shtab",
    "plots": "import matplotlib.pyplot",
    "pandas": """
from orbitgp import Certificate
from orbitgp.evidence.certificate import Danger
assert len(Certificate([Danger("mirror", None, 0.5, 1.0, 3)], 1.0).frame()) == 1
""",
    "images": """
from pathlib import Path
from PIL import Image
from orbitgp.data.sources import read_data
for label in "ab":
    Path("images", label).mkdir(parents=True)
    for place in range(3):
        Image.new("L", (8, 8), 40 * place).save(f"images/{label}/{place}.png")
assert read_data(Path("images")).x.shape == (6, 8, 8)
""",
    "parquet": """
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
from orbitgp.data.sources import read_data
pq.write_table(pa.table({"a": [1.0, 2.0], "label": [0, 1]}), "table.parquet")
assert read_data(Path("table.parquet")).x.shape == (2, 1)
""",
    "webdataset": "from orbitgp.data.webdataset import WebDatasetStream\nimport webdataset",
    "huggingface": """
import datasets
from orbitgp.data.recognise import stream_of
data = datasets.Dataset.from_dict({"x": [[0.0, 1.0], [1.0, 0.0]], "label": [0, 1]})
stream_of(data)
""",
    "botorch": """
import botorch, torch
import orbitgp
kernel = orbitgp.InvariantKernel(orbitgp.RBF(), orbitgp.coordinate_swap(0, 1, 2))
x = torch.rand(10, 2, dtype=torch.float64)
botorch.models.SingleTaskGP(x, x.sum(1, keepdim=True), covar_module=kernel).posterior(x)
""",
    "torchvision": """
import orbitgp
assert "v2.Transform" in orbitgp.export_policy(orbitgp.Mirror(), "torchvision").source
""",
    "kornia": """
import torch
import orbitgp
augment = orbitgp.export_policy(orbitgp.Affine(-0.1, 0.1), "kornia").make()
assert augment(torch.rand(2, 3, 8, 8)).shape == (2, 3, 8, 8)
""",
    "onnx": """
import onnxruntime
import orbitgp
orbitgp.export_predictor(model, "model.onnx")
onnxruntime.InferenceSession("model.onnx")
""",
    "serve": "import fastapi, onnxruntime, uvicorn",
    "ray": "import ray\nfrom orbitgp.recipes import ray_statistics",
}


def main() -> None:
    """Each in turn; the first that fails ends it."""
    wheel = Path(sys.argv[1]).resolve()
    for extra in sys.argv[2:] or USES:
        with tempfile.TemporaryDirectory() as folder:
            venv.create(Path(folder) / "env", with_pip=True)
            python = str(Path(folder) / "env" / PYTHON)
            required = f"{wheel}[{extra}]" if extra else str(wheel)
            command = [python, "-m", "pip", "install", "--quiet", "--no-compile", TORCH, required]
            subprocess.run(command, check=True)
            subprocess.run([python, "-c", FIT + USES[extra]], check=True, cwd=folder)
            subprocess.run([python, "-m", "orbitgp", "--version"], check=True, cwd=folder)
        print(f"{extra or 'no extra'}: installed from the wheel, and works", flush=True)


if __name__ == "__main__":
    main()
