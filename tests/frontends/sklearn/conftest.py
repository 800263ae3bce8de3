"""Tests of scikit-learn take the estimators of the benchmark."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
