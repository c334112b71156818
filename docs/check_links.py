"""Checks that internal links of a built site lead somewhere: to a file that is there, and to an anchor in it.

usage: check_links.py FOLDER
"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def problems_of(folder):
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                yield f"{path.relative_to(folder)}: '{link}' leads nowhere"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(folder)}: '{link}': no such place in the page"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    problems = list(problems_of(folder))
    print("\n".join(problems) or f"{len(list(folder.rglob('*.html')))} pages, all internal links lead somewhere")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
