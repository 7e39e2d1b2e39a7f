"""Every path, module and class that a page names exists in the checkout, and so does every script."""

import importlib
import re
from collections.abc import Iterator

import pytest

from tests.support.documentation import PAGES, ROOT, code, rows

OURS = (
    "agent_api",
    "cni_contrail",
    "contrail_config",
    "contrail_embedded",
    "contrail_service",
    "contrail_yaml",
    "contrailctl",
    "demo",
    "manager",
)
FOLDERS = (*OURS, ".ci", "build", "deploy", "docs", "scripts", "tests")
BUILT = ("build/",)  # exists after a script ran

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*PAGES.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "deploy").rglob("README.md"))
)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_exists(document: str) -> None:
    missing = [path for path in paths(text_of(document)) if not found(document, path)]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_dotted_name_is_a_module_or_something_in_one(document: str) -> None:
    names = [
        name for name in code(text_of(document)) if re.fullmatch(rf"(?:{'|'.join(OURS)})(?:\.(?!yaml$)\w+)+", name)
    ]
    assert not [name for name in names if not importable(name)]


def text_of(document: str) -> str:
    return (ROOT / document).read_text()


def paths(text: str) -> Iterator[str]:
    """Paths in the checkout, in backticks or in a code block."""
    for span in (*re.findall(r"```.*?```", text, re.DOTALL), *re.findall(r"`[^`\n]+`", text)):
        for path in re.findall(rf"(?<![\w/.-])((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*\w)(?![\w*])", span):
            if not path.startswith(BUILT):
                yield path


def found(document: str, path: str) -> bool:
    return any((folder / path).exists() for folder in (ROOT, (ROOT / document).parent))


def importable(name: str) -> bool:
    """Whether the name leads to a module, or through attributes of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            there: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return all((there := getattr(there, part, None)) is not None for part in parts[length:])
    return False


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if not document.startswith("docs/")])
def test_every_link_of_a_document_outside_the_site_leads_to_a_file_and_heading(document: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)", text_of(document))
    assert not [(target, anchor) for target, anchor in links if not leads_somewhere(document, target, anchor)]


def leads_somewhere(document: str, target: str, anchor: str) -> bool:
    file = (ROOT / document).parent / target if target else ROOT / document
    if not file.exists():
        return False
    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE) if anchor else []
    return not anchor or anchor.removeprefix("#") in [slug(heading) for heading in headings]


def slug(heading: str) -> str:
    """As the site and code hosts form anchors."""
    return re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")


def test_every_script_is_in_the_table_of_the_development_page() -> None:
    documented = {script for row in rows("development", "Scripts") for script in code(row[0])}
    assert documented - {".ci/run"} == {f"scripts/{path.name}" for path in (ROOT / "scripts").iterdir()}
