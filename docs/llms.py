"""`llms.txt`: the pages of the site for language models, as https://llmstxt.org describes it."""

import re
from pathlib import Path
from typing import Any, Final

from docs.generated import with_generated

SECTIONS: Final = ("play", "build", "run", "extend", "reference")


def write_llms_txt(app: Any, failure: Exception | None) -> None:
    """Write each page as Markdown beside its HTML, and `llms.txt`, which lists them with titles."""
    if failure is not None or app.builder.name != "html":
        return
    out, source = Path(app.outdir), Path(app.srcdir)
    lines = [f"# {app.config.project}", "", f"> {_first_paragraph(source / 'index.md')}"]
    for section in SECTIONS:
        lines += ["", f"## {app.env.titles[f'{section}/index'].astext()}", ""]
        for name in sorted(app.env.found_docs):
            if name.startswith(f"{section}/") and not name.endswith("/index"):
                page = source / f"{name}.md"
                (out / f"{name}.md").write_text(with_generated(page.read_text("utf-8")), "utf-8")
                title = app.env.titles[name].astext()
                lines.append(f"- [{title}]({name}.md): {_first_paragraph(page)}")
    (out / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _first_paragraph(page: Path) -> str:
    """Return the page's first paragraph on one line, without links."""
    _, _, rest = page.read_text("utf-8").partition("\n")
    text = " ".join(rest.strip().split("\n\n", 1)[0].split())
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
