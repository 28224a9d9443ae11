"""The files of the package as a test sees them: by path from the root, grouped by the folder that owns them."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("admission", "client", "codecs", "gateway", "loadtest", "synth", "web")


def modules() -> list[Path]:
    """Every Python file of the package, from the root: `codecs/opus.py`."""
    inside = [path for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))]
    return [path.relative_to(ROOT) for path in [ROOT / "__init__.py", ROOT / "__main__.py", *inside]]


def mirrors() -> list[Path]:
    """Every file of tests for one module, from `tests/`: `codecs/test_opus.py`."""
    mirrored = [path for part in PARTS for path in sorted((ROOT / "tests" / part).rglob("test_*.py"))]
    return [path.relative_to(ROOT / "tests") for path in mirrored]


@functools.cache
def parse(module: Path) -> ast.Module:
    return ast.parse((ROOT / module).read_text(), filename=str(module))


def has_code(module: Path) -> bool:
    """Whether there is behaviour to test: a function that does more than `...`, somewhere in the module."""
    functions = [node for node in ast.walk(parse(module)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(not _is_declaration(function) for function in functions)


def _is_declaration(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return all(isinstance(statement, ast.Expr) for statement in function.body)
