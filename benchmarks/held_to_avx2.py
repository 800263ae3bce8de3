"""Runs a Python script as on a processor without AVX-512, AMX and AVX-VNNI: AVX2 is the widest that libraries find.

    python benchmarks/held_to_avx2.py benchmarks/training.py lstm --threads 1

Libraries ask the processor itself what it can (the instruction `cpuid`), and not all have a switch. So ONNX Runtime and
PyTorch are run from copies in which every `cpuid` is a trap, found by disassembly; what catches it (held_to_avx2.c)
asks the processor, and answers without the newer instructions. A library asks when it starts, so its code then runs
at full speed: it is what the library has for such a processor. The C library is told by its own switch, and the
compiler of Onward's kernels by a flag. Needs x86-64, Linux, `cc` and `objdump`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HELD = "ONWARD_BENCHMARK_HELD"
"""The environment variable that says that a process is held."""
LIBRARIES = {
    "onnxruntime": ["capi/onnxruntime_pybind11_state.*.so"],
    "torch": ["lib/libtorch_cpu.so", "lib/libc10.so"],
}
"""The libraries of each package that compute."""
ASKS, TRAPS = b"\x0f\xa2", b"\xcc\x90"
FOUND = re.compile(rb"^\s*([0-9a-f]+):\s+cpuid\s*$")


def places(library: Path) -> list[int]:
    """Where in the file it asks."""
    sections = subprocess.run(["objdump", "-h", library], capture_output=True, check=True, text=True).stdout
    shifts = []  # of each section: address, size, place in the file
    for line in sections.splitlines():
        cells = line.split()
        if len(cells) == 7 and cells[0].isdigit():
            shifts.append((int(cells[3], 16), int(cells[2], 16), int(cells[5], 16)))
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", library], stdout=subprocess.PIPE) as listing:
        assert listing.stdout is not None
        lines = [line for line in listing.stdout if b"cpuid" in line]
    addresses = [int(found[1], 16) for line in lines if (found := FOUND.match(line))]
    return [
        at - address + offset for at in addresses for address, size, offset in shifts if address <= at < address + size
    ]


def patch(library: Path) -> int:
    """Make a trap of each place where a library asks; how many there are."""
    found = places(library)
    with library.open("r+b") as file:
        for place in found:
            file.seek(place)
            if file.read(2) != ASKS:
                raise SystemExit(f"{library.name}: no cpuid at {place:#x}, where objdump shows one")
            file.seek(place)
            file.write(TRAPS)
    return len(found)


def copied(package: str, folder: Path) -> None:
    """A package whose libraries trap: links to its files, and copies of those libraries."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    source, target = Path(spec.origin).parent, folder / package
    computing = {path for pattern in LIBRARIES[package] for path in source.glob(pattern)}
    inside = {above for path in computing for above in path.parents}

    def link(here: Path, there: Path) -> None:
        there.mkdir()
        for path in here.iterdir():
            if path in inside:
                link(path, there / path.name)
            elif path in computing or path.suffix == ".so" or ".so." in path.name:
                shutil.copy2(path, there / path.name)  # a link would be followed to where its neighbours do not trap
            else:
                (there / path.name).symlink_to(path)

    link(source, target)
    for path in computing:
        print(f"{path.name}: {patch(target / path.relative_to(source))} × cpuid", file=sys.stderr)


def held(folder: Path) -> dict[str, str]:
    """The environment of a process that is held; what it needs is put into the folder."""
    for package in LIBRARIES:
        copied(package, folder)
    answers, compiler = folder / "answers.so", folder / "cc"
    command = ["cc", "-O2", "-shared", "-fPIC", str(Path(__file__).with_suffix(".c")), "-o", str(answers)]
    subprocess.run(command, check=True)
    compiler.write_text('#!/bin/sh\nexec cc "$@" -mno-avx512f -mno-avxvnni\n')
    compiler.chmod(0o755)
    return os.environ | {
        HELD: "1",
        "LD_PRELOAD": str(answers),
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW",
        "CC": str(compiler),
        "XDG_CACHE_HOME": str(folder),
    }


def is_held() -> bool:
    return HELD in os.environ


def again(command: list[str]) -> int:
    """Run a script of Python held; its exit code."""
    with tempfile.TemporaryDirectory(prefix="onward-avx2-") as folder:
        return subprocess.run([sys.executable, *command], env=held(Path(folder)), check=False).returncode


if __name__ == "__main__":
    sys.exit(again(sys.argv[1:]))
