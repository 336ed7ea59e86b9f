"""What a segment register of the guest has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """A segment register with its hidden half; limit is in bytes, attributes as in QEMU's dump:
    bits 8 to 15 are the access byte, 20 to 23 the flags."""

    selector: int
    base: int
    limit: int
    attributes: int

    @property
    def access(self) -> int:
        """The access byte: present, privilege, type."""
        return self.attributes >> 8 & 0xFF

    @property
    def flags(self) -> int:
        """Granularity, size, and two more."""
        return self.attributes >> 20 & 0xF
