"""All commands."""

from orbitgp.cli.ablate import ABLATE
from orbitgp.cli.compare import COMPARE
from orbitgp.cli.completion import completion
from orbitgp.cli.data import CHECK_DATA
from orbitgp.cli.describe import DESCRIBE
from orbitgp.cli.discover import DISCOVER
from orbitgp.cli.evaluate import EVALUATE
from orbitgp.cli.export import EXPORT
from orbitgp.cli.fit import FIT
from orbitgp.cli.predict import PREDICT
from orbitgp.cli.report import REPORT
from orbitgp.cli.resume import RESUME

ASKING = (COMPARE, DISCOVER, ABLATE)
OTHERS = (FIT, RESUME, *ASKING, EVALUATE, PREDICT, DESCRIBE, REPORT, EXPORT, CHECK_DATA)
COMMANDS = (*OTHERS, completion(OTHERS))
