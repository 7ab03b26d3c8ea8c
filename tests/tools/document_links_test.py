"""Links between the documents of the repository lead to a file, and to a heading of it."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def documents():
    folders = [ROOT / name for name in ("docs", "deploy", "models", "src", "tests", "tools")]
    return sorted(ROOT.glob("*.md")) + sorted(path for folder in folders for path in folder.rglob("*.md"))


def without_code(text):
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(document):
    """The names that GitHub gives to the headings: lower case, spaces as dashes, no punctuation."""
    headings = re.findall(r"^#+ +(.*)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(document):
    broken = []
    for link in LINK.findall(without_code(document.read_text())):
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = document.parent / path if path else document
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    return broken


class DocumentLinksTest(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        found = documents()
        self.assertIn(ROOT / "README.md", found)
        broken = {str(document.relative_to(ROOT)): links for document in found if (links := broken_links(document))}
        self.assertEqual(broken, {})


if __name__ == "__main__":
    unittest.main()
