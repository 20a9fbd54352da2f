"""What a crate makes public, by its sources: a line for each item, field, variant, method and trait."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_COMMENT = re.compile(r"//[^\n]*")
_TEXT = re.compile(r"""(?:b|c|r#*)?"(?:\\.|[^"\\])*"#*|b?'(?:\\.|[^'\\])'""", re.DOTALL)
_ATTRIBUTE = re.compile(r"#\[((?:[^\[\]]|\[[^\]]*\])*)\]\s*")
_ITEM = re.compile(
    r"pub (?:(?:async|const|extern|unsafe) )*"
    r"(?P<kind>const|enum|fn|mod|static|struct|trait|type|use)\b ?(?P<name>\w*)"
)
_KEYWORDS = re.compile(r"\b(?:pub|async|const|unsafe|extern|enum|fn|mod|static|struct|trait|type) ")
_VALUE = re.compile(r"(?<=pub const )(\w+: [^=]*) = .*")
_PRIVATE_FIELDS = re.compile(r"(?<=pub struct )(\w+(?:<.*?>)?)\((?!.*pub \w).*")
_IMPL = re.compile(r"(?:unsafe )?impl(?:<.*?>)? (?P<trait>.* for )?(?:\w+::)*(?P<name>\w+)")


def public_surface(folder: Path) -> list[str]:
    """Return the public surface of a crate whose sources are in a folder."""
    surface = _Surface()
    modules = [(_module(file, folder), _code(file)) for file in sorted(folder.rglob("*.rs"))]
    for _, code in modules:
        surface.modules.update(re.findall(r"^pub mod (\w+)", code, re.MULTILINE))
        for used in re.findall(r"^pub use ([^;]*);", code, re.MULTILINE):
            surface.names.update(re.findall(r"\w+", used))
    for module, code in modules:
        surface.add_items(module, code)
    for _, code in modules:
        surface.add_impls(code)
    return sorted(surface.lines)


def public_names(folder: Path) -> list[str]:
    """Return the same without signatures, a line for each type or module."""
    names: dict[str, list[str]] = {}
    for line in public_surface(folder):
        owner, item = re.findall(r"^(?:([\w:]+): )?(?:#\[.*?\] )*(.*)", line)[0]
        if not item.startswith(("pub use", "impl", "unsafe impl")):
            item = _KEYWORDS.sub("", item)
            item = re.split(r"\W", item, maxsplit=1)[0]
        names.setdefault(owner or "crate", []).append(item.partition(" for ")[0])
    return [f"{owner}: {', '.join(sorted(set(items)))}" for owner, items in sorted(names.items())]


def _module(file: Path, folder: Path) -> list[str]:
    return [part for part in file.relative_to(folder).with_suffix("").parts if part not in ("lib", "mod")]


def _code(file: Path) -> str:
    """Return a file without comments, its tests, and what in texts would look like code."""
    code = _TEXT.sub(lambda text: re.sub(r"[^\w\"]", "", text[0]), _COMMENT.sub("", file.read_text()))
    return code.partition("#[cfg(test)]\nmod ")[0]


def _split(code: str, end: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before each `end` or block in braces, and what is in that block."""
    depth, start, opened = 0, 0, None
    for at, letter in enumerate(code):
        if letter in "([{":
            depth += 1
            opened = at if depth == 1 and letter == "{" else opened
        depth -= letter in ")]}"
        if depth == 0 and letter in (end, "}"):
            yield (
                _line(code[start:opened] if opened else code[start:at]),
                code[opened + 1 : at] if opened else "",
            )
            start, opened = at + 1, None
    yield _line(code[start:]), ""


def _line(code: str) -> str:
    """Return a declaration on one line, with those attributes that its users notice."""
    line = re.sub(r",? ([)\]>])", r"\1", re.sub(r"([(\[<]) ", r"\1", " ".join(code.split())))
    attributes = [each for each in _ATTRIBUTE.findall(line) if re.match("cfg|derive|non_exhaustive", each)]
    line = _PRIVATE_FIELDS.sub(r"\1", _VALUE.sub(r"\1", _ATTRIBUTE.sub("", line)))
    return "".join(f"#[{each}] " for each in attributes) + line


class _Surface:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.modules: set[str] = set()
        self.names: set[str] = set()

    def _add(self, owner: str, line: str) -> None:
        self.lines.append(f"{owner}: {line}" if owner else line)

    def add_items(self, module: list[str], code: str) -> None:
        """Add what a module declares."""
        is_public = self.modules.issuperset(module)
        owner = "::".join(module) if is_public else ""
        for line, body in _split(code, ";"):
            if not (found := _ITEM.search(line)):
                continue
            kind, name = found["kind"], found["name"]
            if kind == "use":
                if is_public:
                    self._add(owner, line + (f"{{{_line(body)}}}" if body else ""))
            elif is_public or name in self.names:
                if kind == "mod" and body:
                    self.modules.add(name)
                    self.add_items([*module, name] if is_public else [name], body)
                    continue
                self.names.add(name)
                self._add(owner, line)
                self._add_members(kind, name, body)

    def _add_members(self, kind: str, name: str, body: str) -> None:
        if kind == "trait":
            members = [line for line, _ in _split(body, ";")]
        elif kind == "enum":
            members = [
                f"{line} {{ {_line(fields)} }}" if fields else line for line, fields in _split(body, ",")
            ]
        elif kind == "struct":
            members = [line for line, _ in _split(body, ",") if re.search(r"\bpub \w", line)]
        else:
            return
        for member in filter(None, members):
            self._add(name, member)

    def add_impls(self, code: str) -> None:
        """Add the public methods and the traits of public types."""
        for line, body in _split(code, ";"):
            found = _IMPL.search(line)
            if not found or found["name"] not in self.names:
                continue
            if found["trait"]:
                self._add(found["name"], line)
                continue
            for member, _ in _split(body, ";"):
                if _ITEM.search(member):
                    self._add(found["name"], member)
