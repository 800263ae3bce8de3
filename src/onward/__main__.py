"""`python -m onward`: Python searches the current folder first for modules, where files of others may lie."""

import os
import sys

if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(os.curdir):
    del sys.path[0]

from onward.cli import main

sys.exit(main())
