"""`python -m orbitgp`."""

import sys

from orbitgp.cli import main

if __name__ == "__main__":
    sys.exit(main())
