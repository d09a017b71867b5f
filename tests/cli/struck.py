"""A command that a signal meets just before the n-th files that it puts in place.

`python -m tests.cli.struck SIGKILL 5 fit …`, `python -m tests.cli.struck SIGINT 4,6 fit …`
"""

import os
import signal
import sys

from orbitgp.cli import main
from tests.files.crash import KILL


def strike_now(number):
    """Heard at once, by this thread."""
    os.kill(os.getpid(), KILL) if number == KILL else signal.raise_signal(number)


def strike(number, places):
    original, calls = os.replace, [0]

    def replace(*arguments):
        if not str(arguments[1]).endswith(".pyc"):  # modules that are compiled do not count
            calls[0] += 1
            if calls[0] in places:
                strike_now(number)
        return original(*arguments)

    os.replace = replace


if __name__ == "__main__":
    # a shell starts its background jobs deaf to Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    number = KILL if sys.argv[1] == "SIGKILL" else signal.Signals[sys.argv[1]]
    strike(number, {int(place) for place in sys.argv[2].split(",")})
    sys.exit(main(sys.argv[3:]))
