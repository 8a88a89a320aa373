"""``python -m hikernel`` is the command ``hikernel``."""

import sys

from hikernel.cli import main

if __name__ == "__main__":
    sys.exit(main())
