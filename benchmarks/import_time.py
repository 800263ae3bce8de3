"""Time of `import onward`, and what it loads.

python benchmarks/import_time.py
"""

import statistics
import subprocess
import sys
import time

import machine

LIMIT = 0.3
FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "sklearn", "pandas", "polars", "onnxruntime")


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    rounds = [[seconds(code) for code in ("pass", "import onward", "from onward import load")] for _ in range(21)]
    bare = statistics.median(times[0] for times in rounds)
    took, used = (statistics.median(times[i] - times[0] for times in rounds) for i in (1, 2))
    probe = f"import sys, onward; print(*[name for name in {FRAMEWORKS} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True).stdout.split()
    print(f"python alone {bare:.3f} s, `import onward` takes {took:.3f} s more, `from onward import load` {used:.3f} s")
    print(f"(medians of {len(rounds)} rounds, in turns)")
    print(f"frameworks loaded: {', '.join(loaded) or 'none'}")
    print(machine.describe("onward"))
    sys.exit(took >= LIMIT or bool(loaded))


if __name__ == "__main__":
    main()
