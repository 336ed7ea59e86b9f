"""What a tagged PDF says of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def tags(node: Any) -> Iterator[tuple[str, str | None]]:
    """Kind and alternative text of each part of a PDF, from its /StructTreeRoot down."""
    children = node["/K"] if "/K" in node else []  # noqa: SIM401 (get gives a reference)
    for child in (each.get_object() for each in ([children], children)[isinstance(children, list)]):
        if isinstance(child, dict) and "/S" in child:
            yield child["/S"], child.get("/Alt")
            yield from tags(child)
