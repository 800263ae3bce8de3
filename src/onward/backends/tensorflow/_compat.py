"""All that differs between versions of TensorFlow, so that nothing else has to know of versions.

Generated code is the same for each of them. `benchmarks/tf_versions.py` runs it on any number of versions.
"""

from __future__ import annotations

import re

from onward.errors import UnsupportedError

Version = tuple[int, int]

OLDEST: Version = (2, 16)
"""What is generated was not tried on anything older, which has Keras 2."""
WEBP: Version = (2, 20)
"""The first that decodes WebP; all decode BMP, JPEG and PNG."""

IMAGE_FORMATS = f"BMP, JPEG and PNG, from TensorFlow {WEBP[0]}.{WEBP[1]} on WebP, too"


def check_version(installed: str) -> None:
    """Raise for a version that generated code does not run on."""
    found = re.match(r"(\d+)\.(\d+)", installed)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST:
        raise UnsupportedError(
            f"TensorFlow {installed} is installed; generated code needs {OLDEST[0]}.{OLDEST[1]} or newer"
        )
