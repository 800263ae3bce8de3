"""Peak memory of a conversion, beyond the weights, on a model of 3 GB made here and deleted afterwards.

    python benchmarks/memory.py

The conversion runs in a process of its own, as a user's would. What counts is anonymous memory: pages of the mapped
weight file are the weights themselves, and the system may drop them at any time.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import synthetic

MB = 1_000_000
CONVERT = """
import sys
import onward
from onward.backends.torch.convert import generate, write_package
write_package(generate(onward.load(sys.argv[1])), sys.argv[2])
"""


def peaks(command: list[str]) -> tuple[dict[str, int], float]:
    """The largest of each kind of memory in bytes while the command ran, and its seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(command)
    status = Path(f"/proc/{process.pid}/status")
    largest = {"RssAnon": 0, "RssFile": 0, "RssShmem": 0}
    while process.poll() is None:
        for line in status.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key in largest:
                largest[key] = max(largest[key], 1024 * int(value.split()[0]))
        time.sleep(0.002)
    if process.returncode:
        sys.exit(f"the conversion failed with exit code {process.returncode}")
    return largest, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=5632)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="onward-memory-") as scratch:
        path = Path(scratch) / "large.onnx"
        weights = synthetic.large(path, args.layers, args.width)
        largest, seconds = peaks([sys.executable, "-c", CONVERT, str(path), str(Path(scratch) / "package")])
    used, limit = largest["RssAnon"] + largest["RssShmem"], weights // 4 + 300 * MB
    print(f"weights                        {weights / MB:8,.0f} MB")
    print(f"peak anonymous memory          {used / MB:8,.0f} MB   {used / weights:.1%} of the weights")
    print(f"allowed: 25 % and 300 MB       {limit / MB:8,.0f} MB   {'kept' if used < limit else 'EXCEEDED'}")
    print(f"peak of mapped pages           {largest['RssFile'] / MB:8,.0f} MB   (for information)")
    print(f"time                           {seconds:8,.1f} s")
    print(machine.describe("onward", "torch"))
    sys.exit(used >= limit)


if __name__ == "__main__":
    main()
