"""Takes user names and passwords out of addresses before they are shown or stored. Knows nothing else."""

from __future__ import annotations

import re

# The second form is an address whose scheme was forgotten.
_USERINFO = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^\s'\"<>]*@", re.IGNORECASE)
_BARE = re.compile(r"(?<![\w/@])[^\s/@'\"<>:]+:[^\s/@'\"<>]+@(?=[\w\[])")


def masked(text: str) -> str:
    """Return `text` with […] in place of the user name and password of every address in it."""
    if "@" not in text:
        return text
    return _BARE.sub("[…]@", _USERINFO.sub(r"\g<scheme>[…]@", text))
