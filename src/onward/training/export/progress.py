"""How a `train.py` keeps count of its steps and writes all of its files or none, whatever the framework."""

PROGRESS = '''
def load_progress() -> tuple[int, int]:
    """The steps and epochs that were made; a run that ended while it moved what it had written is finished first."""
    progress = json.loads((FOLDER / "progress.json").read_text())
    for name in progress["written"]:
        if (FOLDER / f"{name}.part").exists():
            (FOLDER / f"{name}.part").replace(FOLDER / name)
    if progress["written"]:
        note_progress(progress["step"], progress["epoch"], [])
    return progress["step"], progress["epoch"]


def note_progress(step: int, epoch: int, written: list[str]) -> None:
    """`written` are files that are complete, but not in their places yet."""
    part = FOLDER / "progress.json.part"
    part.write_text(json.dumps({"step": step, "epoch": epoch, "written": written}))
    part.replace(FOLDER / "progress.json")
'''
