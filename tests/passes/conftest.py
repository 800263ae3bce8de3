"""Tests of passes build and compare models as those of op rules do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
