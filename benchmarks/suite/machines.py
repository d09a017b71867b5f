"""Support vector machines and boosted trees of scikit-learn, their constants cross-validated."""

from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.suite.folds import Folds, folds
from experiments.prediction import Prediction, of_probabilities
from experiments.splits import Split

COSTS = (1.0, 10.0, 100.0)
WIDTHS = (0.1, 0.3, 1.0, 3.0)
"""Of γ, times 1/(D Var x), for the mean squared distance of inputs is 2 D Var x."""

MAX_FEATURES = 200
"""That a split of a tree chooses from: thousands of pixels would take hours."""

RATES = (0.03, 0.1, 0.3)


def svm(split: Split, *, seed: int) -> Prediction:
    """An RBF machine; Platt's probabilities come from the folds, classes from the machine.

    Whether inputs are standardised is cross-validated, too: pixels are better as they are.
    """
    x, x_test = (part.reshape(len(part), -1) for part in (split.x, split.x_test))
    parts = folds(split.y, seed=seed)
    if not split.num_classes:
        return _regressed(x, split.y, x_test, parts)
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grids("svc", x), cv=parts)
    search.fit(x, split.y)
    calibrated = CalibratedClassifierCV(search.best_estimator_, cv=parts).fit(x, split.y)
    about = {"chosen": chosen(search)}
    return Prediction(search.predict(x_test), calibrated.predict_proba(x_test), about)


def grids(name: str, x: np.ndarray) -> list[dict[str, Any]]:
    """Constants of a machine for inputs that are standardised, and for inputs as they are."""
    return [
        {
            "standardscaler": [scaler],
            f"{name}__C": COSTS,
            f"{name}__gamma": [width / (x.shape[1] * variance) for width in WIDTHS],
        }
        for scaler, variance in ((StandardScaler(), 1.0), ("passthrough", float(x.var())))
    ]


def _regressed(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, parts: Folds) -> Prediction:
    """Numbers are standardised, too."""
    mean, deviation = y.mean(), y.std()
    # its tube would be wide beside small errors
    machine = make_pipeline(StandardScaler(), SVR(epsilon=0.01))
    search = GridSearchCV(machine, grids("svr", x), cv=parts, scoring="neg_mean_absolute_error")
    search.fit(x, (y - mean) / deviation)
    means = search.predict(x_test) * deviation + mean
    return Prediction(means, None, {"chosen": chosen(search)})


def boosting(split: Split, *, seed: int) -> Prediction:
    """Histogram gradient boosting; the learning rate is cross-validated."""
    x, x_test = (part.reshape(len(part), -1) for part in (split.x, split.x_test))
    numbers = not split.num_classes
    trees: Any = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
    score = "neg_mean_absolute_error" if numbers else "neg_log_loss"
    # leaves of 20 inputs, the default, would leave small data without a tree
    leaf, part = min(20, max(1, len(x) // 20)), min(1.0, MAX_FEATURES / x.shape[1])
    model = trees(min_samples_leaf=leaf, max_features=part, random_state=seed)
    grid, cv = {"learning_rate": RATES}, folds(split.y, seed=seed)
    search = GridSearchCV(model, grid, cv=cv, scoring=score).fit(x, split.y)
    about = {"chosen": chosen(search)}
    if numbers:
        return Prediction(search.predict(x_test), None, about)
    return of_probabilities(search.predict_proba(x_test), **about)


def chosen(search: Any) -> str:
    """The constants that were taken."""
    best = {name.split("__")[-1]: value for name, value in search.best_params_.items()}
    scaled = {StandardScaler: "standardised"}.get(type(best.pop("standardscaler", None)))
    words = [f"{name} {value:.3g}" for name, value in best.items()]
    return ", ".join(words + ([scaled] if scaled else []))
