"""A run as one HTML file that people can read: no network, no scripts."""

from orbitgp.reports.report import write_report as write_report
