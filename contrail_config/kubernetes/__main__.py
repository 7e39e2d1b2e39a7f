"""Writes the CustomResourceDefinitions as YAML files: `python -m contrail_config.kubernetes FOLDER`."""

import sys
from pathlib import Path

import yaml

from contrail_config.kubernetes.crds import crds


def main(folder: str) -> None:
    """Writes one file for each kind."""
    for name, definition in crds().items():
        plural = name.partition(".")[0]
        text = yaml.safe_dump(definition, sort_keys=False, width=120, allow_unicode=True)
        Path(folder, f"{plural}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
