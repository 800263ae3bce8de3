"""Training on a Ray cluster of three machines, one of which is lost midway: is it the curve of one process?

    python benchmarks/ray_nodes.py            only shown
    python benchmarks/ray_nodes.py --write    puts the result into docs/measured/curves.md

The machines are processes of this one that Ray takes for machines. Two workers train on two of them, and checkpoints
go to a folder that all see. After the first of these, the machine of a worker is taken away as if its power failed.
"""

import argparse
import csv
import os
import tempfile
import threading
import time
from pathlib import Path

import machine
import numpy as np
import torch
from ray.cluster_utils import Cluster
from torch import nn

import onward
from onward import training
from onward.cli import main as onward_command

PAGE = Path(__file__).parent.parent / "docs/measured/curves.md"
BEGIN, END = "<!-- ray nodes: written by benchmarks/ray_nodes.py -->", "<!-- end of ray nodes -->"
MEMORY = 80 << 20
"""Bytes of each machine's object store."""
RUN = ["train", "run", "trainable.onnx", "--data", "data.npz", "--batch", "8", "--epochs", "12", "--quiet"]
ON_RAY = ["--workers", "2", "--on", "ray", "--storage", "shared", "--worker-timeout", "60"]


def parent_of(process: str) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def workers(machines: dict[int, object]) -> list[object]:
    """The machine of each worker that trains, of those by the number of their process."""
    found = []
    for process in filter(lambda path: path.name.isdigit(), Path("/proc").iterdir()):
        try:
            is_worker = b"RayTrainWorker" in (process / "cmdline").read_bytes()
            found += [machines[parent_of(process.name)]] if is_worker and parent_of(process.name) in machines else []
        except OSError:  # it has ended
            continue
    return found


def curve(path: str) -> np.ndarray:
    with Path(path).open() as file:
        return np.array([float(row["loss"]) for row in csv.DictReader(file)])


def trained() -> tuple[np.ndarray, np.ndarray, int]:
    """The curves of one process and of the cluster, and on how many machines its workers were."""
    draw = np.random.default_rng(4)
    np.savez("data.npz", x=draw.standard_normal((27, 4), np.float32), labels=draw.integers(0, 3, 27))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    model = onward.from_torch(net, torch.zeros(2, 4), input_names=["x"])
    training.prepare(model, optimizer=training.AdamW(lr=1e-2), clip_norm=1.0).save("trainable.onnx")
    assert onward_command([*RUN, "--out", "alone.onnx"]) == 0
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(3)]
    machines = {node.all_processes["raylet"][0].process.pid: node for node in nodes}
    used: list[object] = []

    def lose() -> None:
        while not list(Path("shared/tuned.ray").glob("checkpoint_*/state")):
            time.sleep(0.02)
        used.extend(workers(machines))
        cluster.remove_node(used[-1], allow_graceful=False)

    os.environ["RAY_ADDRESS"] = cluster.address
    Path("shared").mkdir()
    thread = threading.Thread(target=lose, daemon=True)
    thread.start()
    try:
        assert onward_command([*RUN, *ON_RAY, "--out", "tuned.onnx"]) == 0
        thread.join()
    finally:
        cluster.shutdown()
    return curve("alone.csv"), curve("tuned.csv"), len(set(map(id, used)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"put the result into {PAGE.name}")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="onward-ray-nodes-") as scratch:
        os.chdir(scratch)
        alone, together, used = trained()
        os.chdir(PAGE.parent)
    apart = np.abs(together / alone - 1).max()
    words = (
        f"Two workers on {used} machines, of which one was lost after the first checkpoint: {len(together)} of"
        f" {len(alone)} batches, and losses at most {apart:.0e} from those of one process."
    )
    text = "\n".join([BEGIN, words, "", machine.describe("onward", "onnxruntime", "ray"), END])
    if args.write:
        machine.put(PAGE, BEGIN, END, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
