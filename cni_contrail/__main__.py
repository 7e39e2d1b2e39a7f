"""Entry point of the plugin with the fastest start: `python -I -S .../cni_contrail/__main__.py`, without `site`.

The process lives for one call. So it collects no garbage and exits without interpreter shutdown, which would cost more
than the kernel's work for an interface; all output is unbuffered. Only CHECK, which is not urgent, needs a library
beyond the standard one.
"""

import gc
import os
import sys

if __name__ == "__main__":
    gc.disable()
    # -I leaves the script's directory out of the path.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    if os.environ.get("CNI_COMMAND") == "CHECK":
        import site

        site.main()

    from cni_contrail.plugin import main

    os._exit(main())
