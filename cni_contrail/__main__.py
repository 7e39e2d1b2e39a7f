"""Starts the plugin the fastest way: `python -I -S .../cni_contrail/__main__.py`, without what `site` looks for.

The process lives for one call, so it collects no garbage, and it ends at once: what it writes is written unbuffered,
and taking an interpreter down in order costs more than the kernel's work for an interface. Only CHECK, which is not
urgent, uses a library beyond the standard one.
"""

import gc
import os
import sys

if __name__ == "__main__":
    gc.disable()
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    if os.environ.get("CNI_COMMAND") == "CHECK":
        import site

        site.main()

    from cni_contrail.plugin import main

    os._exit(main())
