"""Every file and folder that Onward writes for a user: all of it, or nothing, whatever interrupts it.

What is new is written beside what is there, under a name that nobody can guess, and takes its place once it is closed,
by one step of the file system. What a process that was killed has left is put right by the next one. With `durable` it
is on the disk before that: for checkpoints and models of a training, which cannot be made again.
"""

from onward.writing.files import new_file, write_text
from onward.writing.folders import make_folder, new_files, new_folder
from onward.writing.manifest import MANIFEST, check_unedited, edited, write_manifest, written_in
from onward.writing.staging import clear_leftovers, keep_mode, locked, real, refusals

__all__ = [
    "MANIFEST",
    "check_unedited",
    "clear_leftovers",
    "edited",
    "keep_mode",
    "locked",
    "make_folder",
    "new_file",
    "new_files",
    "new_folder",
    "real",
    "refusals",
    "write_manifest",
    "write_text",
    "written_in",
]
