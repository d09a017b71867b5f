"""The data sets of the experiments, found under ORBITGP_DATA, with checksums."""

import hashlib
import os
from pathlib import Path

import numpy as np

from orbitgp.data.idx import read_idx
from orbitgp.data.labelled import LabelledData
from orbitgp.data.npz import read_npz
from orbitgp.errors import FileError, InputError

SOURCES = {
    "mnist": "the four IDX files of MNIST (LeCun, Cortes and Burges)",
    "fashion-mnist": "the four IDX files of zalandoresearch/fashion-mnist",
    "usps": "USPS digits: x_train, x_test [n, 16, 16] in [0, 1], y_train, y_test as one npz",
    "kmnist-test": "the test part of Kuzushiji-MNIST by CODH (rois-codh/kmnist)",
    "notmnist-10k": "10,000 letters of notMNIST (davidflanagan/notMNIST-to-MNIST)",
    "mnist-rot-standin": "digits of MNIST turned by random angles (made for this project)",
    "malaria-cells": "malaria cells of NIH/NLM (Rajaraman et al. 2018), 28×28, green",
    "mirabest-confident": "radio galaxies of MiraBest (fmporter/MiraBest)",
    "cifar10-20k": "20,000 training and all test images of CIFAR-10 (Krizhevsky 2009)",
    "ucr": "series of the UCR archive (Dau et al. 2018), one npz each",
    "qm7": "geometries and energies of QM7 (qmlcode/qml)",
}


def data_folder() -> Path:
    """$ORBITGP_DATA, or shared/data beside a checkout."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    return Path(os.environ.get("ORBITGP_DATA", beside))


def names() -> list[str]:
    """Every name that `load_named` knows."""
    series = sorted(Path(file).stem for file in checksums() if file.startswith("ucr/"))
    return [name for name in SOURCES if name != "ucr"] + [f"ucr/{name}" for name in series]


def checksums() -> dict[str, str]:
    """sha256 of every file of every named set."""
    lines = (Path(__file__).parent / "sha256.txt").read_text().split()
    return dict(zip(lines[1::2], lines[::2], strict=True))


def files_of(name: str) -> list[str]:
    """The files of a set, under the folder of data."""
    known = checksums()
    if name.startswith("ucr/"):
        files = [f"{name}.npz"]
    else:
        files = [file for file in known if file.startswith(f"{name}/")]
    if name not in names() or not set(files) <= known.keys():
        raise InputError(f"no set of data is called {name!r}; there are {', '.join(names())}")
    return files


def check(name: str) -> None:
    """Refuse a set with a file that is missing or not the one that was published."""
    folder, known = data_folder(), checksums()
    missing = [file for file in files_of(name) if not (folder / file).is_file()]
    if missing:
        source = SOURCES[name.split("/")[0]]
        raise FileError(
            f"{name} is not here: get {source}, and put {', '.join(missing)} into {folder}, or "
            "set ORBITGP_DATA to the folder that has them"
        )
    for file in files_of(name):
        digest = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        if digest != known[file]:
            raise FileError(
                f"{folder / file} has sha256 {digest}; expected {known[file]}: it is damaged, or "
                "another version"
            )


def load_named(name: str) -> LabelledData:
    """A named set, after its files were checked."""
    check(name)
    folder = data_folder()
    paths = [folder / file for file in files_of(name)]
    if paths[0].suffix == ".gz":
        arrays = [read_idx(path) for path in sorted(paths)]  # t10k before train, images first
        test, train = arrays[:2], arrays[2:]
        return LabelledData(*(train or test), *(test if train else ()))
    arrays = {}
    for path in paths:
        prefix = f"{path.stem}/" if len(paths) > 1 else ""
        arrays |= {prefix + key: value for key, value in read_npz(path).items()}
    return _labelled(name, arrays)


def _labelled(name: str, arrays: dict[str, np.ndarray]) -> LabelledData:
    """Which arrays of a set are inputs and which are labels."""
    match name:
        case "kmnist-test":
            return LabelledData(
                arrays["kmnist-test-imgs/arr_0"], arrays["kmnist-test-labels/arr_0"]
            )
        case "malaria-cells":
            test = arrays["fold"] == 0  # all cells of a patient share a fold
            return _split(arrays["images"], arrays["labels"], test)
        case "mirabest-confident":
            return _split(arrays["images"], arrays["labels"], arrays["batch"] == 0)
        case "qm7":
            return LabelledData(
                np.concatenate([arrays["Z"][:, :, None], arrays["R"]], 2), arrays["e_pbe0"]
            )
    if "x_test" not in arrays or not len(arrays["x_test"]):
        return LabelledData(arrays["x_train"], arrays["y_train"])
    return LabelledData(*(arrays[key] for key in ("x_train", "y_train", "x_test", "y_test")))


def _split(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> LabelledData:
    return LabelledData(x[~test], y[~test], x[test], y[test])
