"""Imports go down only, third parties stay behind borders, public names are deliberate."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import orbitgp

PACKAGE, ROOT = Path(orbitgp.__file__).parent, Path(__file__).parent.parent

# from the ground up; modules of one layer never import each other unless they share a folder
LAYERS = [
    {"errors", "filters", "memory"},
    {"values", "sealed", "data", "devices"},
    {"ustatistics", "gaussians"},
    {"kernels"},
    {"orbits", "features", "posterior", "likelihoods"},
    {"patches"},
    {"orbit_model"},
    {"model", "exact_model"},
    {"callbacks", "distributed", "blueprints"},
    {"inference"},
    {"hyperparameters"},
    {"fit"},
    {"stochastic"},
    {"estimators", "recipes"},
    {"files", "scores", "evidence", "export"},
    {"reports", "displays"},
    {"__init__"},
    {"cli"},
    {"__main__"},
]

BORDERS = {
    "joblib": {"evidence/executors.py"},
    "torchvision": {"export/templates/torchvision.py"},
    "kornia": {"export/templates/kornia.py"},
    "jsonargparse": {"cli/parser.py"},
    "shtab": {"cli/completion.py"},
    "gpytorch": {"kernels.py"},
    "linear_operator": set(),
    "PIL": {"data/images.py"},
    "pyarrow": {"data/parquet.py"},
    "safetensors": {"sealed.py", "values.py"},
    "sklearn": {
        "data/named.py",
        *(f"estimators/{name}.py" for name in ("base", "classifier", "regressor")),
    },
    "braceexpand": {"data/webdataset.py"},
    "webdataset": {"data/webdataset.py"},
    "tqdm": {"callbacks/base.py"},
    "matplotlib": {"displays/axes.py"},
    "ray": {"recipes.py"},
    "pandas": {"evidence/tables.py"},
    "jinja2": {"reports/page.py"},
    "markupsafe": {
        *(f"reports/{name}.py" for name in ("charts", "gallery", "performance", "pictures")),
        *(f"reports/{name}.py" for name in ("sizes", "training", "worths")),
    },
    "scipy": {"hyperparameters/learn.py", "reports/performance.py", "scores.py"},
}

ALLOWED = {"torch", "numpy", "jaxtyping", "orbitgp", *BORDERS}


def imports(path):
    """Every imported module of a file, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "orbitgp":
                yield from (f"orbitgp.{alias.name}" for alias in node.names)


def layer(part):
    return next(height for height, parts in enumerate(LAYERS) if part in parts)


def test_every_module_has_a_layer():
    parts = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir()}
    parts -= {"py", "__pycache__"}
    assert parts == set().union(*LAYERS)


def test_imports_go_down():
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imports(path):
            if name.startswith("orbitgp."):
                other = name.split(".")[1]
                assert other == own or layer(other) < layer(own), f"{path} imports {name}"


def test_benchmarks_use_experiments_and_never_the_other_way_round():
    """Both use the library; neither uses tests, examples or docs."""
    allowed = {"experiments": {"experiments"}, "benchmarks": {"benchmarks", "experiments"}}
    ours = {path.name for path in ROOT.iterdir() if path.is_dir()}
    for folder, known in allowed.items():
        for path in (ROOT / folder).rglob("*.py"):
            other = {name.split(".")[0] for name in imports(path)} & ours - known
            assert not other, f"{path} imports {other}"


def test_third_parties_stay_behind_their_borders():
    for path in PACKAGE.rglob("*.py"):
        for name in imports(path):
            root = name.split(".")[0]
            if root in BORDERS:
                assert str(path.relative_to(PACKAGE)) in BORDERS[root], f"{path} imports {name}"
            else:
                assert root in ALLOWED or root in sys.stdlib_module_names, f"{path} imports {name}"
            if name.startswith("torch.distributed"):
                place = str(path.relative_to(PACKAGE))
                assert place in ("distributed/process_group.py", "cli/processes.py"), place


DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn"}
"""Names of packages where they differ from those of their modules."""


def test_third_parties_are_declared():
    """What is imported is required by pyproject.toml or one of its extras, and not by chance."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)
    core = {re.split(r"[^\w-]", text)[0] for text in project["project"]["dependencies"]}
    extras = project["project"]["optional-dependencies"]
    users = {name: parts for name, parts in extras.items() if name not in ("test", "dev", "docs")}
    declared = core | {re.split(r"[^\w-]", text)[0] for parts in users.values() for text in parts}
    found = {name.split(".")[0] for path in PACKAGE.rglob("*.py") for name in imports(path)}
    found -= sys.stdlib_module_names | {"orbitgp"}
    missing = {DISTRIBUTIONS.get(name, name) for name in found} - declared
    assert not missing, f"imported, but not declared: {missing}"
    always = {"torch", "numpy", "scipy", "sklearn", "joblib", "markupsafe", "jinja2", "gpytorch"}
    assert {DISTRIBUTIONS.get(name, name) for name in always} <= core


def test_no_global_randomness():
    """No call draws from torch's global generator: every random function is given one."""
    random = {"rand", "randn", "randint", "randperm", "multinomial", "normal", "bernoulli"}
    random |= {"normal_", "uniform_", "bernoulli_", "exponential_", "random_", "random"}
    refused = {"torch.manual_seed", "torch.rand_like", "torch.randn_like", "np.random.default_rng"}
    library = [path for path in PACKAGE.rglob("*.py") if "templates" not in path.parts]
    for path in library:  # templates are copied into programs that draw as their library does
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                source = ast.unparse(node.func)
                if node.func.attr in random and not source.startswith("check_random_state("):
                    given = {keyword.arg: keyword.value for keyword in node.keywords}
                    place = f"{path}:{node.lineno}"
                    assert "generator" in given, f"{place} draws without a generator"
                    assert not isinstance(given["generator"], ast.Constant), place
                assert source not in refused, f"{path}:{node.lineno}"
                if not source.startswith("np.random.SeedSequence"):  # mixes seeds, draws nothing
                    assert not source.startswith(("np.random.", "random.")), f"{path}:{node.lineno}"


def test_public_names():
    """Removing or adding a public name is deliberate: it changes this list."""
    assert set(orbitgp.__all__) == {
        *("Affine", "CyclicShifts", "FiniteOrbit", "FunctionOrbit", "GaussianNoise", "Identity"),
        *("Mirror", "Orbit", "PermutationGroup", "QuarterTurns", "Rotation", "SignFlips"),
        *("UniformRange", "compose", "coordinate_swap", "Intensity", "LocalDeformation"),
        *("Blur", "Colour", "Crop", "Drift", "Magnitude", "TimeAffine", "TimeWarp", "Window"),
        *("Jitter", "PointMirror", "PointRotation", "Translation", "RandomOrder"),
        *("block_permutations", "OrientedEnergy", "PatchFeatures"),
        *("RBF", "InvariantKernel", "InducingPosterior", "InvariantGP", "ExactInvariantGP"),
        *("greedy_points", "kmeans_points", "random_points"),
        *("Likelihood", "Gaussian", "OneHotGaussian", "PolyaGamma", "Softmax"),
        "Recognition",
        *("InvariantGPClassifier", "InvariantGPRegressor", "TrainingSettings", "load", "save"),
        "StochasticSettings",
        *("compare", "Comparison", "ablate", "Ablation", "discover", "Discovery"),
        *("tolerated", "Tolerance"),
        *("Transformation", "certificate", "Certificate", "check_orbit", "OrbitCheck"),
        *("export_policy", "Policy", "export_predictor"),
        *("OrbitDisplay", "EvidenceDisplay", "RangeDisplay", "CalibrationDisplay"),
        *("Callback", "JsonlLog", "ProgressBar"),
        *("elbo", "elbo_from_statistics", "statistics", "stream_statistics", "solve"),
        *("mean_pairs", "unbiased_pairs"),
        *("Elbo", "OrbitSample", "Prediction", "SufficientStatistics"),
        *("OrbitGPError", "InputError", "NumericalError", "FileError"),
    }
    assert all(hasattr(orbitgp, name) for name in orbitgp.__all__)


def test_lazy_names_are_those_of_the_type_checker():
    """What a type checker sees imported and what is looked up at run time are the same."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {(n.module, a.name) for n in block.body for a in n.names}
    found = {(f"orbitgp.{home}", name) for home, names in orbitgp._HOMES.items() for name in names}
    assert seen == found
    assert {name for _, name in found} == set(orbitgp.__all__)


def test_importing_brings_nothing_but_the_names():
    """Beside torch: what a name needs is imported when the name is first used."""
    code = (
        "import sys, torch; before = set(sys.modules); import orbitgp; "
        "print(sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"['orbitgp']\n"


def test_what_few_need_is_imported_late():
    """Templates and plots, by those alone who write a report or draw one."""
    code = (
        "import sys, orbitgp; assert all(getattr(orbitgp, name) for name in orbitgp.__all__); "
        "import orbitgp.cli; print({'jinja2', 'matplotlib'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"set()\n"
