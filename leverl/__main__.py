"""`python -m leverl` is the `leverl` command."""

import sys

from leverl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
