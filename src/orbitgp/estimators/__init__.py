"""scikit-learn estimators."""

from orbitgp.estimators.classifier import InvariantGPClassifier as InvariantGPClassifier
from orbitgp.estimators.regressor import InvariantGPRegressor as InvariantGPRegressor
