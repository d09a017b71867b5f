"""orbitgp beside other methods, on images, series and molecules.

python -m benchmarks.suite.run
python -m benchmarks.suite.summary
"""
