"""`python -m contrail_embedded.demo`."""

import sys

from contrail_embedded.demo.cli import main

sys.exit(main())
