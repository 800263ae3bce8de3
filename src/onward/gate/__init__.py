"""The one gate through which every file of a framework is opened.

A function that opens files is declared with `@opens(dangers)`. Before it runs, the gate refuses what is no ordinary
file or folder, and, unless the user trusts the file, whatever in it would be executed.
"""

from onward.gate.files import ordinary
from onward.gate.opening import harmless, opens
from onward.gate.running import allow_beside, foreign, own_source, run_source
from onward.gate.trust import is_trusted, need_trust, trusting
from onward.gate.written import is_written, remember

__all__ = [
    "allow_beside",
    "foreign",
    "harmless",
    "is_trusted",
    "is_written",
    "need_trust",
    "opens",
    "ordinary",
    "own_source",
    "remember",
    "run_source",
    "trusting",
]
