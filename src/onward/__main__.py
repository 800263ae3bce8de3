import sys

from onward.cli import main

sys.exit(main())
