"""Makes the static site: build.py FOLDER. It has the pages of the service that need no service, in FOLDER, as files that open from
file://: no modules, no fetch, no address that begins with a slash. record.py has put the recorded schedules into FOLDER/recorded."""

import html
import json
import os
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bundle import bundle

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "service" / "page"
HERE = Path(__file__).parent
LESSONS = Path(os.environ.get("BUILD") or ROOT / "build") / "generated" / "lessons"
REPLACED = {
    PAGE / "steps" / "live_source.js": HERE / "recorded_source.js",
    PAGE / "steps" / "steps_page.js": HERE / "steps_page.js",
    PAGE / "shared" / "api.js": HERE / "no_service.js",
}
FAULTS = {"none": "no fault", "expire": "a lease ends", "crash": "a crash"}
PROCESSES = "05-one-process"  # the lesson that runs two processes
MOST_BYTES = 15_000_000


def relative(text, up):
    """The text of a page, with addresses that begin with a slash as files of the site. UP leads from the page to its root."""
    text = re.sub(r'<script type="module" src="/page/(\w+)/(\w+)\.js"></script>', rf'<script defer src="{up}\2.js"></script>', text)
    text = re.sub(r'(href|src)="/page/\w+/([\w.-]+)"', rf'\1="{up}files/\2"', text)
    text = re.sub(r'href="/steps(#[^"]*)?"', rf'href="{up}steps.html\1"', text)
    text = re.sub(r'href="/lessons/?"', f'href="{up}lessons/index.html"', text)
    text = re.sub(r'href="/lessons/([\w-]+)(#[^"]*)?"', rf'href="{up}lessons/\1.html\2"', text)
    text = re.sub(r'href="/"', f'href="{up}index.html"', text)
    text = re.sub(r">http://localhost:8080(/steps[^<]*)<", r">\1<", text)
    # What only a service has, such as its API, is plain text.
    return re.sub(r'<a [^>]*href="/[^"]*"[^>]*>(.*?)</a>', r"\1", text, flags=re.S)


def steps_page():
    text = relative((PAGE / "steps" / "steps.html").read_text(), "")
    text = re.sub(r"<footer>.*?</footer>", "<footer>These schedules were recorded: the service's code ran them on real servers.</footer>", text, flags=re.S)
    text = text.replace("Workshop page", "All recorded schedules")
    return text.replace("</head>", '  <link rel="stylesheet" href="files/site.css">\n</head>')


def is_new(found, plain):
    """Whether the fault changes anything: it can happen, and the simplest counterexample has it."""
    if found["witness"]:
        return "!" in found["witness"]["replay"]
    return not plain or (found["schedules"], found["oversold"]) != (plain["schedules"], plain["oversold"])


def table(rows, searches, has_lessons):
    lines = []
    for row in rows:
        cells = []
        for faults in FAULTS:
            found = searches[row["name"]].get(faults)
            name = f"{row['name']}, {FAULTS[faults]}"
            if found and faults != "none" and not is_new(found, searches[row["name"]].get("none")):
                found = None
            witness = found and found["witness"]
            more = "" if not found or found["complete"] else "+"
            if witness:
                text = f"{found['oversold']} of {found['schedules']}{more}" if found["oversold"] else "fails"
                address = html.escape(witness["replay"].split(" ")[0] + "".join(f"+{word}" for word in witness["replay"].split(" ")[1:]))
                cells.append(f'<td class="is-bad"><a href="steps.html#{address}" aria-label="{html.escape(name)}: {text}">{text}</a></td>')
            elif found:
                cells.append(f"<td>0 of {found['schedules']}{more}</td>")
            else:
                cells.append("<td>–</td>")
        if "second-process" in row["shown_by"].split("+"):
            text = f'<a href="lessons/{PROCESSES}.html" aria-label="{row["name"]}, a second process: oversells">oversells</a>' if has_lessons else "oversells"
            cells.append(f'<td class="is-bad">{text}</td>')
        else:
            cells.append("<td>–</td>")
        start = f'<a href="steps.html#{row["name"]}+s=1+q=1,1">{row["name"]}</a>'
        lines.append(f'<tr><th scope="row">{start}</th><td>{html.escape(row["title"])}</td>{"".join(cells)}</tr>')
    return "\n".join(lines)


def recorded(file):
    """What a script of record.py has stored."""
    return json.loads(file.read_text().split("] = ", 1)[1].rstrip().rstrip(";"))


def main():
    folder = Path(sys.argv[1])
    overview = recorded(folder / "recorded" / "strategies.js")
    files = folder / "files"
    files.mkdir(exist_ok=True)
    for source in [*PAGE.glob("shared/*.css"), *PAGE.glob("shared/*.svg"), *PAGE.glob("steps/*.css"), *PAGE.glob("lessons/*.css"), HERE / "site.css"]:
        shutil.copy(source, files / source.name)
    (folder / "steps.html").write_text(steps_page())
    (folder / "steps.js").write_text(bundle(PAGE / "steps" / "steps.js", REPLACED))
    (folder / "index.js").write_text(bundle(HERE / "index.js", REPLACED))
    lessons = sorted(LESSONS.glob("*.html"))
    if lessons:
        (folder / "lessons").mkdir(exist_ok=True)
        (folder / "lessons.js").write_text(bundle(PAGE / "lessons" / "lessons.js", REPLACED))
        for page in lessons:
            (folder / "lessons" / page.name).write_text(relative(page.read_text(), "../"))
    start = (HERE / "index.html").read_text()
    start = start.replace("$rows", table(overview["strategies"], overview["searches"], bool(lessons)))
    start = start.replace("$lessons", '<p><a href="lessons/index.html">The lessons</a> explain the strategies, one after the other.</p>' if lessons else "")
    (folder / "index.html").write_text(relative(start, ""))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if size >= MOST_BYTES:
        sys.exit(f"build.py: the site has {size / 1e6:.1f} MB, and may have {MOST_BYTES / 1e6:.0f}; record fewer states (record.py)")
    print(f"{folder}/index.html: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
