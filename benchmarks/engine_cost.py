"""What the engine costs beside a job's own time, and how it scales: local processes, and workers of Ray.

python benchmarks/engine_cost.py            prints it, and writes docs/measured/engine.md
python benchmarks/engine_cost.py --print    prints it only

Overhead: many jobs that do nothing, one at a time; what the clock says of all, less what the jobs took themselves,
divided by their number. Scaling: jobs that compute for a while, by one worker and by two in turns; the best ratio of
the rounds, since other programs can only make it worse. It needs two processors that are free.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import machine

from onward.engine.jobs import Engine, Limits, Work
from onward.engine.local import Local
from onward.engine.on_ray import OnRay

PAGE = Path(__file__).parent.parent / "docs/measured/engine.md"
JOBS = 200
HEAVY = 8
SECONDS = 1.5
"""Of the processor, for each job that computes."""
PLACE = "ray://local"


def begin(job: float) -> None:
    """There is nothing to import."""


def compute(seconds: float) -> float:
    """Keep the processor busy for so long, and say how long that took by the clock."""
    began, end = time.perf_counter(), time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
    return time.perf_counter() - began


WORK = Work(compute, begin)


def took(engine: Engine, jobs: list[float]) -> tuple[float, float]:
    """Seconds by the clock from the first result to the last, and of the jobs between."""
    times, own = [], []
    for _, done in engine.map(WORK, jobs, Limits(600)):
        assert not done.failure, done.failure
        times.append(time.perf_counter())
        own.append(done.seconds)
    return times[-1] - times[0], sum(own[1:])


def overhead(engine: Engine) -> float:
    """Milliseconds a job."""
    clock, own = took(engine, [0.0] * JOBS)
    return 1000 * (clock - own) / (JOBS - 1)


def total(engine: Engine, workers: int) -> float:
    """Seconds for all heavy jobs. As many light ones as there are workers come first, for the start of those."""
    times = []
    for job, _ in engine.map(WORK, [0.0] * workers + [SECONDS] * HEAVY, Limits(600)):
        times.append((time.perf_counter(), job))
    return times[-1][0] - max(at for at, job in times if not job)


def lines(rounds: int) -> list[str]:
    rows = []
    for name, one, two in (
        ("local processes", Local(1), Local(2)),
        ("Ray", OnRay(PLACE, 1), OnRay(PLACE, 2)),
    ):
        cost = statistics.median(overhead(one) for _ in range(rounds))
        ratios = [total(one, 1) / total(two, 2) for _ in range(rounds)]
        rows.append(f"| {name} | {cost:.1f} ms | {max(ratios):.2f} | {', '.join(f'{r:.2f}' for r in ratios)} |")
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="write no page")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    rows = lines(args.rounds)
    what = (__doc__ or "").strip().split("\n\n")[-1]
    page = [
        "# What the engine costs",
        "",
        "`onward zoo run` and `onward scoreboard` do their jobs by an engine: processes of this machine, or of a Ray",
        f"cluster. {what}",
        "",
        "Written by `python benchmarks/engine_cost.py`. The load of the machine was"
        f" {load:.1f} when it began. {machine.describe('ray')}",
        "",
        "| engine | overhead a job | two workers ÷ one | rounds |",
        "|---|---|---|---|",
        *rows,
    ]
    if not args.print:
        PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    import engine_cost  # under a name by which workers find it

    engine_cost.main()
