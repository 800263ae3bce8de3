"""The one gate through which every file of a framework is opened.

A function that opens files is declared with `@opens(dangers)`. Before it runs, the gate refuses what is no ordinary
file or folder, and, unless the user trusts the file, whatever in it would be executed.
"""

from onward.gate.files import ordinary
from onward.gate.opening import opens
from onward.gate.trust import is_trusted, need_trust, trusting

__all__ = ["is_trusted", "need_trust", "opens", "ordinary", "trusting"]
