"""The command line; nothing here imports torch before a command needs it."""

from orbitgp.cli.entry import main as main
