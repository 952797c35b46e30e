"""Puts an ES module and all that it imports into one classic script, which a page from file:// can load. For the modules of this
project: named imports and exports of relative paths, at the beginning of a line."""

import re
from pathlib import Path

IMPORT = re.compile(r'^import\s*(?:\{([^}]*)\}\s*from\s*)?"([^"]+)";\n?', re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:const|let|function|class)\b)", re.MULTILINE)
NAMES = re.compile(r"^export\s+(?:async\s+)?(?:const|let|function\*?|class)\s+(\w+)", re.MULTILINE)


class BundleError(Exception):
    pass


def bundle(entry, replaced=None):
    """The script's text. REPLACED: a module's path → the path of the one that takes its place."""
    replaced = {Path(old).resolve(): Path(new).resolve() for old, new in (replaced or {}).items()}
    parts = []
    done = {}  # path → exported names; None while its imports are read

    def add(path, is_entry=False):
        path = replaced.get(path.resolve(), path.resolve())
        if path in done:
            if done[path] is None:
                raise BundleError(f"{path.name} imports itself, by way of others")
            return path
        done[path] = None
        text = path.read_text()

        def imported(match):
            names, target = match.groups()
            if not target.startswith("."):
                raise BundleError(f"{path.name} imports {target}, which is no relative path")
            module = add(path.parent / target)
            if names is None:
                return ""
            wanted = [part.strip() for part in names.split(",") if part.strip()]
            for part in wanted:
                if part.split(" as ")[0] not in done[module]:
                    raise BundleError(f"{path.name} imports {part}, which {module.name} does not export")
            listed = ", ".join(part.replace(" as ", ": ") for part in wanted)
            return f"const {{ {listed} }} = modules[{ids[module]}];\n"

        body = IMPORT.sub(imported, text)
        names = NAMES.findall(body)
        body = EXPORT.sub("", body)
        if re.search(r"^(import|export)\b", body, re.MULTILINE):
            raise BundleError(f"{path.name} has an import or export that the bundler does not know")
        ids[path] = len(ids)
        done[path] = set(names)
        listed = ", ".join(f"get {name}() {{ return {name}; }}" for name in names)
        # The entry may wait at its top level, so it is an asynchronous function; no module imports it.
        head = f"// {path.name}\nmodules[{ids[path]}] = ({'async ' if is_entry else ''}() => {{\n"
        parts.append(f"{head}{body}\nreturn {{ {listed} }};\n}})();\n")
        return path

    ids = {}
    add(Path(entry), is_entry=True)
    return '"use strict";\n(() => {\nconst modules = [];\n' + "\n".join(parts) + "})();\n"
