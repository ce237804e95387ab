"""Brings files of the repository that pages link to into the site, so that every link of it leads somewhere.

Pages are written for the repository: `../benchmarks/default.toml` is a link there. Such a file becomes
`repository/benchmarks/default.toml` of the site, a Markdown file a page, and links are rewritten accordingly. What
cannot be shown (a folder, a file that is not there) is a warning, which `mkdocs build --strict` ends with.
"""

import logging
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS, ELSEWHERE = "docs/", "repository/"
ALWAYS = ("CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
log = logging.getLogger("mkdocs.hooks.repository")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the pages link to outside docs/, and what these link to."""
    waiting = [file.src_uri for file in files.documentation_pages()]
    for path in ALWAYS:
        _add(path, files, config)
        waiting.append(ELSEWHERE + path)
    while waiting:
        uri = waiting.pop()
        text = (ROOT / _source(uri)).read_text(encoding="utf-8")
        for target in _targets(text, uri):
            if not target.startswith(DOCS) and files.get_file_from_path(ELSEWHERE + target) is None:
                if not (ROOT / target).is_file():
                    log.warning("%s links to %s, which is no file of the repository", uri, target)
                    continue
                _add(target, files, config)
                if target.endswith(".md"):
                    waiting.append(ELSEWHERE + target)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Links as they are in the site."""
    uri = page.file.src_uri

    def rewritten(link: re.Match[str]) -> str:
        target = _resolved(link[1], uri)
        there = target.removeprefix(DOCS) if target.startswith(DOCS) else ELSEWHERE + target
        return posixpath.relpath(there, posixpath.dirname(uri) or ".")

    parts, end = [], 0
    for block in FENCED.finditer(markdown):
        parts += [LINK.sub(rewritten, markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(rewritten, markdown[end:])])


def _add(path: str, files: Files, config: MkDocsConfig) -> None:
    files.append(File.generated(config, ELSEWHERE + path, abs_src_path=str(ROOT / path)))


def _source(uri: str) -> str:
    """Where the page `uri` of the site lies in the repository."""
    return uri.removeprefix(ELSEWHERE) if uri.startswith(ELSEWHERE) else DOCS + uri


def _resolved(link: str, uri: str) -> str:
    """The path in the repository that a link of the page `uri` means."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(_source(uri)), link))


def _targets(text: str, uri: str) -> Iterator[str]:
    for link in LINK.finditer(FENCED.sub("", text)):
        yield _resolved(link[1], uri)
