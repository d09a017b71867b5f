"""Exit codes, and which error ends with which."""

from orbitgp.errors import FileError, NumericalError, OrbitGPError

DONE = 0
BAD_INPUT = 2
BAD_FILE = 3
NUMERICAL = 4
DEFECT = 70
INTERRUPTED = 130
PIPE_CLOSED = 141

EPILOG = (
    "exit codes: 0 done; 2 wrong usage or bad input; 3 a file or folder is "
    "missing or malformed; 4 a numerical failure; 70 a defect of orbitgp; 130 interrupted. "
    "Errors are one line on stderr, and with --json also an object on stdout."
)


def code_of(error: BaseException) -> int:
    """The exit code of an error that ends a command."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, FileError | OSError):
        return BAD_FILE
    if isinstance(error, NumericalError):
        return NUMERICAL
    return BAD_INPUT if isinstance(error, OrbitGPError) else DEFECT
