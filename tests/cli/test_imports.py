"""What a framework imports for nobody is left out while it is loaded, and is there for whoever asks for it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from onward.cli import imports


def test_what_is_left_out_only_while_a_package_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "idle_part.py").write_text("")
    (tmp_path / "needed_part.py").write_text("")
    (tmp_path / "framework.py").write_text(
        "from importlib.util import find_spec\n"
        "import needed_part\n"
        "place = find_spec('idle_part').origin\n"
        "try:\n    import idle_part\nexcept ImportError:\n    idle_part = None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(imports, "IDLE", {"framework": frozenset({"idle_part"})})
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    imports.load_lean()
    framework = importlib.import_module("framework")
    assert framework.idle_part is None
    assert framework.place == str(tmp_path / "idle_part.py")
    assert importlib.import_module("idle_part").__name__ == "idle_part"
